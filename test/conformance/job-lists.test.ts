/** Lists of the jobs of all APIs, on SQLite and on PostgreSQL: every filter finds what a plain search finds. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allIds, countJobs, newestIds, pageOfIds } from "../../src/batch/listing/find-jobs.ts";
import { FoundJobs } from "../../src/batch/listing/found-jobs.ts";
import type { JobFilter } from "../../src/batch/listing/job-filter.ts";
import {
  countByStatus,
  endedBadly,
  newestUnfinished,
  unfinishedByApi,
} from "../../src/batch/listing/overview-jobs.ts";
import { BOTH_DATABASES, type EmptyDatabase } from "../harness/both-databases.ts";
import { insertManyJobs, type ManyJob, manyJobs } from "../harness/many-jobs.ts";

/** More than one statement looks at, in one status and in all. */
const JOBS = manyJobs(11_000, ["Iris", "iris-text", "per%cent", "words"], 5_200);

function matches({ job_id, api_name, status, createdMs }: ManyJob, filter: JobFilter): boolean {
  const { api, statuses, search, createdAfterMs, createdBeforeMs } = filter;
  if (api !== undefined && api !== api_name) return false;
  if (statuses !== undefined && !statuses.includes(status)) return false;
  if (createdMs < (createdAfterMs ?? 0) || createdMs >= (createdBeforeMs ?? Number.POSITIVE_INFINITY))
    return false;
  const text = (search ?? "").toLowerCase();
  return api_name.toLowerCase().includes(text) || job_id.startsWith(text);
}

const FILTERS: [string, JobFilter][] = [
  ["nothing", {}],
  ["an API", { api: "words" }],
  ["an API and statuses", { api: "words", statuses: ["status_running", "status_stopped"] }],
  ["statuses", { statuses: ["status_succeeded", "status_timed_out"] }],
  ["a part of a name, in any case", { search: "IRIS" }],
  ["a sign that SQL gives a meaning", { search: "%" }],
  ["the start of an id", { search: JOBS[777]!.job_id.slice(0, 9).toUpperCase() }],
  ["a whole id", { search: JOBS[777]!.job_id }],
  ["times", { createdAfterMs: JOBS[4_000]!.createdMs, createdBeforeMs: JOBS[9_999]!.createdMs }],
  ["all of it", { statuses: ["status_running"], search: "wor", createdAfterMs: JOBS[6_000]!.createdMs }],
  ["what nothing has", { search: "nobody" }],
];

describe.each(BOTH_DATABASES)("the jobs of all APIs on %s", (_, open, isHere) => {
  let opened: EmptyDatabase | undefined;
  beforeAll(async () => {
    if (!isHere) return;
    opened = await open();
    await insertManyJobs(opened.db, JOBS);
  });
  afterAll(() => opened?.remove());

  it.runIf(isHere).each(FILTERS)("are found by %s", async (_what, filter) => {
    const { db } = opened!;
    const wanted = JOBS.filter((job) => matches(job, filter))
      .map(({ job_id }) => job_id)
      .reverse();
    expect(await countJobs(db, filter)).toBe(wanted.length);
    expect(await allIds(db, filter, wanted.length)).toEqual(wanted);
    const first = { ids: wanted.slice(0, 20), count: wanted.length };
    expect(await pageOfIds(db, filter, { limit: 20, before: undefined })).toEqual(first);
    const after = wanted[Math.floor(wanted.length / 2)];
    if (after === undefined) return;
    expect(await newestIds(db, filter, 20, after)).toEqual(
      wanted.slice(wanted.indexOf(after) + 1).slice(0, 20),
    );
    expect(await allIds(db, filter, wanted.length - 1)).toBeUndefined();
  });

  it.runIf(isHere)("come in pages, whose last one says so", async () => {
    const filter: JobFilter = { statuses: ["status_worker_oom", "status_worker_error"] };
    const found = new FoundJobs(opened!.db);
    const pages: string[] = [];
    for (let before: string | undefined; ; before = pages.at(-1)) {
      const { ids, hasMore } = await found.page(filter, { limit: 90, before });
      pages.push(...ids);
      if (!hasMore) break;
    }
    expect(pages).toEqual(await newestIds(opened!.db, filter, 100_000));
    expect(pages.length).toBe(JOBS.filter((job) => matches(job, filter)).length);
  });

  it.runIf(isHere)(
    "are counted by API and by status for the overview, and the newest are found",
    async () => {
      const { db } = opened!;
      const running = JOBS.filter(({ status }) => status === "status_running");
      const words = running.filter(({ api_name }) => api_name === "words");
      expect((await unfinishedByApi(db)).get("words")).toBe(words.length);
      const counts = await countByStatus(db);
      expect([counts.get("status_running"), counts.get("status_enqueuing")]).toEqual([running.length, 0]);
      await db.run("INSERT INTO job_totals VALUES ('words', 'status_stopped', 7, 0, 0)");
      expect((await countByStatus(db)).get("status_stopped")).toBe(7);
      const newest = await newestUnfinished(db, 50);
      expect(newest.map(({ job_id }) => job_id)).toEqual(
        JOBS.slice(-50)
          .reverse()
          .map(({ job_id }) => job_id),
      );
    },
  );

  it.runIf(isHere)("that ended badly are found by their end, the last one first", async () => {
    const isBad = ({ status }: ManyJob) => !/running|succeeded|stopped/.test(status);
    const bad = JOBS.filter(isBad).reverse();
    const since = new Date(bad[10]!.createdMs).toISOString();
    const found = await endedBadly(opened!.db, since, 20);
    expect(found.map(({ job_id }) => job_id)).toEqual(bad.slice(0, 11).map(({ job_id }) => job_id));
    expect(await endedBadly(opened!.db, "", 3)).toHaveLength(3);
  });
});
