/** The inputs and configurations of jobs, which may have megabytes, are read and removed alone. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "../../../src/base/log.ts";
import { failurePage } from "../../../src/batch/end/failures.ts";
import { Retention } from "../../../src/batch/end/retention.ts";
import { saveFailedAttempt } from "../../../src/batch/records/batch-rows.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import { listJobs, unfinishedJobs } from "../../../src/batch/records/job-lists.ts";
import { configText, insertJob, jobById } from "../../../src/batch/records/job-rows.ts";
import { jobSummary, jobTotals } from "../../../src/batch/records/job-totals.ts";
import { claimJob } from "../../../src/batch/records/owned-job.ts";
import { inputIfKept, storedInput } from "../../../src/batch/records/stored-input.ts";
import type { Database, SqlValue } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";

const INPUT = { kind: "lines", batch_size: 2, store_paths: ["file:///x"] };
const CONFIG = '{"threshold": 1.0}';
const DAY_MS = 86_400_000;
const ENDED = "2026-01-01T00:00:00.000000000Z";

describe("the large columns of jobs", () => {
  let directory: string;
  let db: Database;
  let asked: [string, readonly SqlValue[]][];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-columns-"));
    const real = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(real);
    asked = [];
    db = {
      all: (sql, params = []) => {
        asked.push([sql, params]);
        return real.all(sql, params);
      },
      run: (sql, params = []) => real.run(sql, params),
      transaction: (work) => real.transaction(work),
      close: () => real.close(),
    };
    for (const job of ["job-1", "job-2"]) await insert(job);
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  const insert = (job_id: string) =>
    db.transaction((tx) =>
      insertJob(tx, {
        ...{ job_id, api_name: "a", api_id: "1", workers: 1, timeout_s: null, max_receive_count: 1 },
        ...{ dead_letter_arn: null, dead_letter_queue: null, created_time: ENDED, has_older_names: 0 },
        submission_json: JSON.stringify(INPUT),
        config_json: job_id === "job-1" ? CONFIG : "{}",
      }),
    );
  /** How SQLite runs the statements that `work` makes. */
  const plans = async (work: () => Promise<unknown>): Promise<string[]> => {
    asked = [];
    await work();
    const statements = asked;
    const rows = await Promise.all(
      statements.map(([sql, params]) => db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)),
    );
    return rows.flat().map(({ detail }) => detail);
  };

  it("are not in the rows of jobs", async () => {
    const columns = await db.all<{ name: string }>("SELECT name FROM pragma_table_info('jobs')");
    expect(columns.map(({ name }) => name).filter((name) => /^(submission|config)_json$/.test(name))).toEqual(
      [],
    );
  });

  it("are not read by lists, counts, events or the start; each of these has an index", async () => {
    const page = { limit: 10, before: undefined, status: undefined };
    const status = "status_running" as const;
    expect(await plans(() => listJobs(db, "a", page))).toEqual([
      "SEARCH jobs USING INDEX jobs_by_api (api_name=? AND job_id<?)",
    ]);
    expect(await plans(() => listJobs(db, "a", { ...page, status }))).toEqual([
      "SEARCH jobs USING INDEX jobs_by_status (api_name=? AND status=? AND job_id<?)",
    ]);
    expect(await plans(() => jobSummary(db, "a"))).toEqual([
      "SEARCH jobs USING INDEX jobs_in_progress (api_name=?)",
      "SEARCH jobs USING INDEX jobs_by_api (api_name=?)",
      "SEARCH apis USING INDEX sqlite_autoindex_apis_1 (name=?)",
    ]);
    expect(await plans(() => unfinishedJobs(db))).toEqual(["SCAN jobs USING INDEX jobs_in_progress"]);
    // A row for each API and status, and the jobs in progress.
    expect(await plans(() => jobTotals(db))).toEqual(
      expect.arrayContaining(["SCAN job_totals", "SCAN jobs USING INDEX jobs_in_progress"]),
    );
    const ofOne = "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (job_id=?)";
    expect(await plans(() => jobById(db, "job-1"))).toEqual([ofOne]);
    expect(await plans(() => claimJob(db, "job-1", 1))).toEqual([ofOne]);
  });

  it("are read where they are needed, also if a job has no configuration", async () => {
    expect(await storedInput(db, "job-1")).toEqual(INPUT);
    expect([await configText(db, "job-1"), await configText(db, "job-2")]).toEqual([CONFIG, "{}"]);
    expect((await unfinishedJobs(db)).map(({ job_id }) => job_id)).toEqual(["job-1", "job-2"]);
  });

  it("are written with the row of the job, or not at all", async () => {
    await expect(insert("job-1")).rejects.toThrow(/UNIQUE/);
    await db.run("INSERT INTO job_submissions VALUES ('job-3', '{}')");
    await expect(insert("job-3")).rejects.toThrow(/UNIQUE/);
    expect(await jobById(db, "job-3")).toBeUndefined();
  });

  it("the input is removed by the retention, with the mark; the configuration stays with the record", async () => {
    const fault = { stage: "predict" as const, type: "E", message: "m", traceback: "t" };
    await saveFailedAttempt(db, "job-1", 1, { batch_index: 0, cause: "fault", isFinal: true, fault });
    await db.run(
      "UPDATE jobs SET status = 'status_completed_with_failures', end_time = ? WHERE job_id = 'job-1'",
      [ENDED],
    );
    const [job] = await db.all<{ api_name: string }>("SELECT api_name FROM jobs WHERE job_id = 'job-1'");
    await db.run("INSERT INTO apis (name, kind, api_id, deployed_time) VALUES (?, 'BatchAPI', '1', '')", [
      job!.api_name,
    ]);
    const ended = (await jobById(db, "job-1"))!;
    const logDirectory = (id: string) => join(directory, "logs", id);
    const retention = new Retention({
      ...{ db, log: openLog("test", "/dev/null"), dataDir: directory, logDirectory },
      ...{ items: itemsInFiles(directory), removeSoon: () => {} },
      ...{ keepMs: DAY_MS, keepFailedMs: DAY_MS, boundLogs: async () => 0, leftBy: async () => {} },
    });
    const source = { db, store: {} as ObjectStore, items: itemsInFiles(directory) };
    const failuresOf = async (job: typeof ended) => {
      const failures = [];
      for await (const failure of (await failurePage(source, job, { after: { batch: -1 }, limit: 10 }))
        .failures)
        failures.push(failure);
      return failures;
    };
    await db.run("DELETE FROM job_submissions WHERE job_id = 'job-1'");
    // A reader that found the row just before the mark.
    expect(await failuresOf(ended)).toMatchObject([
      { batch_index: 0, payload_error: expect.stringContaining("removed") },
    ]);
    await db.run("INSERT INTO job_submissions VALUES ('job-1', ?)", [JSON.stringify(INPUT)]);
    expect(await retention.runOnce(Date.parse(ENDED) + 2 * DAY_MS)).toEqual(["job-1"]);
    expect(await inputIfKept(db, "job-1")).toBeUndefined();
    await expect(storedInput(db, "job-1")).rejects.toThrow("the input of job job-1 is gone");
    expect(await configText(db, "job-1")).toBe(CONFIG);
    expect(await failuresOf((await jobById(db, "job-1"))!)).toEqual([]);
    expect(await storedInput(db, "job-2")).toEqual(INPUT);
  });
});
