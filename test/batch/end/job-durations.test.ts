/** How long jobs took is counted once for each end, and goes with their API. */
import { beforeEach, describe, expect, it } from "vitest";
import { deleteApi } from "../../../src/apis/records/api-rows.ts";
import { forgetJob } from "../../../src/batch/end/forget-job.ts";
import { endCounted, JOB_DURATION_BOUNDS_S, jobDurations } from "../../../src/batch/end/job-durations.ts";
import { NewRounds } from "../../../src/batch/end/new-round.ts";
import { beginRound, setClosing } from "../../../src/batch/records/job-moves.ts";
import { insertJob } from "../../../src/batch/records/job-rows.ts";
import { jobTotals } from "../../../src/batch/records/job-totals.ts";
import type { JobStatus } from "../../../src/contracts/jobs.ts";
import { NOBODY } from "../../../src/contracts/keys.ts";
import type { Database } from "../../../src/database/database.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

const CREATED_MS = Date.parse("2026-01-01T00:00:00Z");
const time = (seconds: number) => new Date(CREATED_MS + seconds * 1_000).toISOString();

describe("the durations of jobs", () => {
  let db: Database;
  let jobs = 0;
  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    return temporary.remove;
  });

  const insert = async (created_time = time(0)) => {
    const job_id = `job-${++jobs}`;
    await db.transaction((tx) =>
      insertJob(tx, {
        ...{ job_id, api_name: "a", api_id: "1", workers: 1, timeout_s: null, max_receive_count: 1 },
        ...{ dead_letter_arn: null, dead_letter_queue: null, created_time, has_older_names: 0 },
        ...{ submission_json: "{}", config_json: "{}" },
      }),
    );
    return job_id;
  };
  const end = async (jobId: string, seconds: number, status: JobStatus = "status_stopped") => {
    await setClosing(db, jobId, { status });
    return (await endCounted(db, jobId, time(seconds))) !== undefined;
  };
  /** Each status with its jobs by the upper bound of their bucket, and the sum. */
  const read = async () =>
    (await jobDurations(db)).map(({ api, status, buckets, sumSeconds }) => {
      const filled = buckets.flatMap((count, at) => (count > 0 ? [[JOB_DURATION_BOUNDS_S[at], count]] : []));
      return [api, status, filled, sumSeconds];
    });

  it("are in the first bucket that holds them, by API and status", async () => {
    for (const seconds of [0.5, 1, 1.001, 60, 604_801]) await end(await insert(), seconds);
    await end(await insert(), 2, "status_timed_out");
    const buckets = [
      [1, 2],
      [5, 1],
      [60, 1],
      [undefined, 1],
    ];
    expect(await read()).toEqual([
      ["a", "status_stopped", buckets, 604_863.501],
      ["a", "status_timed_out", [[5, 1]], 2],
    ]);
  });

  it("are beside the number of jobs, which counts each in one status, ended or not", async () => {
    const job = await insert();
    const running = await insert();
    const counts = async () => (await jobTotals(db)).map(({ status, jobs }) => [status, jobs]);
    await end(job, 10);
    expect(await counts()).toEqual([
      ["status_enqueuing", 1],
      ["status_stopped", 1],
    ]);
    await new NewRounds(db, async () => null).resume(job, NOBODY);
    await end(running, 10);
    await end(job, 20, "status_timed_out");
    expect(await counts()).toEqual([
      ["status_stopped", 1],
      ["status_timed_out", 1],
    ]);
  });

  it("count an end once, and a new round from its start", async () => {
    const job = await insert();
    expect([await end(job, 10), await end(job, 20)]).toEqual([true, false]);
    expect(await read()).toEqual([["a", "status_stopped", [[15, 1]], 10]]);
    await beginRound(db, job, { status: "status_enqueuing", apiPausedTime: null, startedTime: time(100) });
    await end(job, 103);
    const both = [
      [5, 1],
      [15, 1],
    ];
    expect(await read()).toEqual([["a", "status_stopped", both, 13]]);
  });

  it("are 0 if the clock was set back or a row is broken, and the job ends", async () => {
    expect(await end(await insert(), -5)).toBe(true);
    expect(await end(await insert("then"), 5)).toBe(true);
    expect(await read()).toEqual([["a", "status_stopped", [[1, 2]], 0]]);
  });

  it("stay when records go, and go with the API and its last job", async () => {
    const [first, second] = [await insert(), await insert()];
    for (const job of [first, second]) await end(job, 1);
    await db.run("UPDATE jobs SET pruned_time = 'then'");
    await db.run("INSERT INTO apis (name, kind, api_id, deployed_time) VALUES ('a', 'BatchAPI', '1', '')");
    const forget = (job: string) => forgetJob(db, job, [time(9), time(9)]);
    await forget(first);
    await deleteApi(db, "a");
    expect(await read()).toEqual([["a", "status_stopped", [[1, 2]], 2]]);
    await forget(second);
    expect(await read()).toEqual([]);
    await end(await insert(), 1);
    await db.run("DELETE FROM jobs");
    await deleteApi(db, "a");
    expect(await read()).toEqual([]);
  });
});
