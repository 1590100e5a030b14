/** The retention among many jobs and large rows: each of its statements reads and deletes few of them. */

import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deleteApi } from "../../../src/apis/records/api-rows.ts";
import { openLog } from "../../../src/base/log.ts";
import { askToForget } from "../../../src/batch/end/forget-job.ts";
import { Retention } from "../../../src/batch/end/retention.ts";
import {
  failedItems,
  partsOf,
  saveFailedItems,
  saveParts,
} from "../../../src/batch/isolate/isolated-rows.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import type { JobRow } from "../../../src/batch/records/job-rows.ts";
import { countEnded, jobTotals } from "../../../src/batch/records/job-totals.ts";
import { rowsDirectory } from "../../../src/contracts/data-layout.ts";
import {
  AGED_JOBS_AT_ONCE,
  CONFIG_KEPT_LENGTH_MAX,
  PRUNED_BATCHES_AT_ONCE,
} from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { countRows } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse("2026-02-01T00:00:00.000Z");
const JOBS = 250;
const id = (i: number) => `job-${String(i).padStart(5, "0")}`;

describe("the retention", () => {
  let directory: string;
  let db: Database;
  let retention: Retention;
  /** Rows that each query of jobs returned, and that each deletion of batches deleted. */
  let jobsRead: number[];
  let deleted: number[];
  /** Resolves when the workers of an ended job are gone. */
  let workersLeave: Promise<void>;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-retention-"));
    const real = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(real);
    [jobsRead, deleted] = [[], []];
    workersLeave = Promise.resolve();
    db = {
      all: async <T>(...query: Parameters<Database["all"]>) => {
        const rows = await real.all<T>(...query);
        if (query[0].includes("FROM jobs")) jobsRead.push(rows.length);
        return rows;
      },
      run: async (...statement) => {
        const changes = await real.run(...statement);
        if (statement[0].startsWith("DELETE FROM batches")) deleted.push(changes);
        return changes;
      },
      transaction: (work) => real.transaction(work),
      close: () => real.close(),
    };
    await real.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${JOBS - 1})
       INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time, end_time)
       SELECT printf('job-%05d', i), 'a', '1', 1, 'status_succeeded', '', '2026-01-31T12:00:00.000Z' FROM n`,
    );
    await real.run("INSERT INTO apis (name, kind, api_id, deployed_time) VALUES ('a', 'BatchAPI', '1', '')");
    retention = makeRetention();
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  const makeRetention = (keepRecordsMs?: number, leftBy = () => workersLeave) =>
    new Retention({
      ...{ db, log: openLog("test", "/dev/null"), dataDir: directory },
      ...{ items: itemsInFiles(directory), removeSoon: () => {} },
      ...{ logDirectory: (job: string) => join(directory, "logs", job), keepRecordsMs },
      ...{ keepMs: DAY_MS, keepFailedMs: 9 * DAY_MS, boundLogs: async () => 0 },
      leftBy,
    });

  /** Counts the jobs as their ends do. */
  const countAll = async () => {
    for (const job of await db.all<JobRow>("SELECT api_name, status, succeeded, failed_attempts FROM jobs"))
      await countEnded(db, job, 1);
  };

  it("looks at a limited number of jobs in one statement, also if none is due", async () => {
    expect(await retention.runOnce(NOW_MS)).toEqual([]);
    expect(jobsRead).toEqual([AGED_JOBS_AT_ONCE, AGED_JOBS_AT_ONCE, JOBS - 2 * AGED_JOBS_AT_ONCE]);
  });

  it("finds those that are due in every piece, and those whose removal was interrupted", async () => {
    const set = (what: string, job: number) => db.run(`UPDATE jobs SET ${what} WHERE job_id = ?`, [id(job)]);
    const old = "end_time = '2026-01-30T00:00:00.000Z'";
    for (const job of [0, 99, 100, 249]) await set(old, job);
    await set(`${old}, status = 'status_stopped'`, 5);
    await set(`${old}, pruned_time = 'then'`, 6);
    await set(`${old}, pruned_time = 'then'`, 7);
    await set("end_time = NULL", 8);
    await db.run("INSERT INTO segments VALUES (?, 0, 1, 1, '[]', 0, NULL, 0)", [id(7)]);
    expect(await retention.runOnce(NOW_MS)).toEqual([0, 7, 99, 100, 249].map(id));
    expect(await retention.runOnce(NOW_MS)).toEqual([]);
  });

  it("leaves a job whose new round has ended since it was found", async () => {
    await db.run("UPDATE jobs SET end_time = '2026-01-30T00:00:00.000Z' WHERE job_id IN (?, ?)", [
      id(3),
      id(4),
    ]);
    const rows = rowsDirectory(directory, id(4));
    mkdirSync(rows, { recursive: true });
    // While the first one is removed, the second one is redriven, and succeeds.
    const redrive = async () => {
      await db.run("UPDATE jobs SET end_time = ? WHERE job_id = ?", ["2026-02-01T00:00:00.000Z", id(4)]);
    };
    expect(await makeRetention(undefined, redrive).runOnce(NOW_MS)).toEqual([id(3)]);
    expect(existsSync(rows)).toBe(true);
  });

  it("removes the files of a job once its workers are gone", async () => {
    await db.run("UPDATE jobs SET end_time = '2026-01-01' WHERE job_id = ?", [id(1)]);
    const rows = rowsDirectory(directory, id(1));
    mkdirSync(rows, { recursive: true });
    let leave!: () => void;
    workersLeave = new Promise((resolve) => (leave = resolve));
    const run = retention.runOnce(NOW_MS);
    const marked = async () =>
      (await db.all("SELECT 1 FROM jobs WHERE job_id = ? AND pruned_time IS NOT NULL", [id(1)])).length === 1;
    await eventually("no new round can begin", marked);
    expect(existsSync(rows)).toBe(true);
    leave();
    expect(await run).toEqual([id(1)]);
    expect(existsSync(rows)).toBe(false);
  });

  it("removes long configs, also those that former releases kept, and no short ones", async () => {
    const old = "end_time = '2026-01-01'";
    await db.run(`UPDATE jobs SET ${old} WHERE job_id IN (?, ?)`, [id(1), id(2)]);
    await db.run(`UPDATE jobs SET ${old}, pruned_time = 'then' WHERE job_id IN (?, ?)`, [id(3), id(4)]);
    const configs = [0, 1, 3].map((job) => [id(job), "x".repeat(CONFIG_KEPT_LENGTH_MAX + 1)] as const);
    for (const job of [2, 4]) configs.push([id(job), "x".repeat(CONFIG_KEPT_LENGTH_MAX)]);
    for (const config of configs) await db.run("INSERT INTO job_configs VALUES (?, ?)", config);
    expect(await retention.runOnce(NOW_MS)).toEqual([1, 2, 3].map(id));
    const left = await db.all<{ job_id: string }>("SELECT job_id FROM job_configs ORDER BY job_id");
    // The first one is not due.
    expect(left.map(({ job_id }) => job_id)).toEqual([0, 2, 4].map(id));
    expect(await retention.runOnce(NOW_MS)).toEqual([]);
  });

  describe("of a deleted API", () => {
    const tables = ["jobs", "job_configs", "job_outputs", "output_parts", "job_submissions", "api_versions"];
    const rows = () => countRows(db, tables);
    beforeEach(async () => {
      await db.run(
        `INSERT INTO api_versions (name, api_id, predictor_id, spec_json, project_id, deployed_time)
         VALUES ('a', '1', 'p', '{}', '', '')`,
      );
      for (const job of [0, 1]) {
        await db.run("INSERT INTO job_configs VALUES (?, '{\"a\":1}')", [id(job)]);
        await db.run("INSERT INTO job_submissions VALUES (?, '{}')", [id(job)]);
        await db.run("INSERT INTO job_outputs VALUES (?, 'here/', 'none', NULL, NULL)", [id(job)]);
        await db.run("INSERT INTO output_parts VALUES (?, 1, 0, 1, 1, 'part', 1, 1, 'x', NULL)", [id(job)]);
      }
      await db.run("DELETE FROM jobs WHERE job_id > ?", [id(1)]);
      await db.run("UPDATE jobs SET end_time = '2026-01-30T00:00:00.000Z' WHERE job_id = ?", [id(1)]);
    });
    const ofOne = { jobs: 1, job_configs: 1, job_outputs: 1, output_parts: 1, job_submissions: 1 };

    it("removes the last rows of jobs whose data it has removed, and the versions with the last job", async () => {
      await db.run("DELETE FROM apis");
      expect(await retention.runOnce(NOW_MS)).toEqual([id(1)]);
      expect(await rows()).toEqual({ ...ofOne, api_versions: 1 });
      expect(await retention.runOnce(NOW_MS + 2 * DAY_MS)).toEqual([id(0)]);
      expect(await rows()).toEqual({});
    });

    it("keeps them if an API has the name again, and removes them when that is gone, too", async () => {
      expect(await retention.runOnce(NOW_MS)).toEqual([id(1)]);
      const kept = { ...ofOne, jobs: 2, job_configs: 2, job_outputs: 2, api_versions: 1 };
      expect(await rows()).toEqual(kept);
      expect(await retention.runOnce(NOW_MS)).toEqual([]);
      await db.run("DELETE FROM apis");
      expect(await retention.runOnce(NOW_MS)).toEqual([id(1)]);
      expect(await rows()).toEqual({ ...ofOne, api_versions: 1 });
    });

    it("keeps them as long as a new API could find the job by its Idempotency-Key", async () => {
      await db.run("DELETE FROM apis");
      await db.run("UPDATE jobs SET pruned_time = 'then'");
      expect(await retention.runOnce(NOW_MS)).toEqual([id(1)]);
      expect(await retention.runOnce(NOW_MS + DAY_MS)).toEqual([id(0)]);
    });
  });

  it("removes records when they are old enough, and the metrics go on counting the jobs", async () => {
    const counts = "succeeded = 3, failed_attempts = 1";
    await db.run(`UPDATE jobs SET ${counts}, end_time = '2026-01-20T00:00:00.000Z' WHERE job_id < ?`, [
      id(2),
    ]);
    await db.run("INSERT INTO job_configs VALUES (?, '{\"a\":1}')", [id(0)]);
    retention = makeRetention(20 * DAY_MS);
    expect(await retention.runOnce(NOW_MS)).toEqual([id(0), id(1)]);
    await countAll();
    const total = [{ api: "a", status: "status_succeeded", jobs: JOBS, succeeded: 6, failed: 2 }];
    expect(await jobTotals(db)).toEqual(total);
    // Twenty days after their end, and not before.
    expect(await retention.runOnce(NOW_MS + 7 * DAY_MS)).not.toContain(id(0));
    expect(await retention.runOnce(NOW_MS + 9 * DAY_MS)).toEqual([id(0), id(1)]);
    expect(await db.all("SELECT job_id FROM jobs WHERE job_id < ?", [id(2)])).toEqual([]);
    expect(await db.all("SELECT job_id FROM job_configs")).toEqual([]);
    expect(await jobTotals(db)).toEqual(total);
    expect(await makeRetention(0).runOnce(NOW_MS + DAY_MS / 4)).toEqual([]);
    await db.run("DELETE FROM apis");
    await retention.runOnce(NOW_MS + 30 * DAY_MS);
    expect(await jobTotals(db)).toEqual([]);
  });

  it("the counts go with the API, also if all records were gone before", async () => {
    await db.run("UPDATE jobs SET end_time = '2026-01-20T00:00:00.000Z'");
    await countAll();
    await makeRetention(1).runOnce(NOW_MS);
    await makeRetention(1).runOnce(NOW_MS);
    expect(await countRows(db, ["jobs", "job_totals"])).toEqual({ job_totals: 1 });
    await deleteApi(db, "a");
    expect(await jobTotals(db)).toEqual([]);
  });

  it("removes the records of an API's jobs on request, also young ones, and none of later jobs", async () => {
    await db.run("DELETE FROM jobs WHERE job_id > ?", [id(3)]);
    await db.run("UPDATE jobs SET created_time = '2026-01-31T11:00:00.000000000Z'");
    await db.run("UPDATE jobs SET created_time = '2026-01-31T12:00:00.000000000Z' WHERE job_id = ?", [id(2)]);
    await db.run("UPDATE jobs SET end_time = NULL WHERE job_id = ?", [id(3)]);
    await db.run("INSERT INTO idempotency_keys VALUES ('a', 'key', '', ?, 0)", [id(0)]);
    const time = "2026-01-31T11:30:00.000000000Z";
    expect(await askToForget(db, "b", time)).toBe(0);
    expect(await askToForget(db, "a", time)).toBe(3);
    const left = async () =>
      (await db.all<{ job_id: string }>("SELECT job_id FROM jobs ORDER BY job_id")).map(
        ({ job_id }) => job_id,
      );
    const young = Date.parse("2026-01-31T12:00:00.000Z");
    await makeRetention().runOnce(young);
    expect(await left()).toEqual([id(2), id(3)]);
    // The one that still ran goes when it has ended, and then the request is done.
    expect(await db.all("SELECT api_name FROM forget_requests")).toHaveLength(1);
    await db.run("UPDATE jobs SET end_time = '2026-01-31T12:00:00.000Z' WHERE job_id = ?", [id(3)]);
    await makeRetention().runOnce(young);
    expect(await left()).toEqual([id(2)]);
    expect(await db.all("SELECT * FROM forget_requests")).toEqual([]);
    expect(await db.all("SELECT * FROM idempotency_keys")).toEqual([]);
  });

  it("deletes a limited number of failed batches in one statement", async () => {
    await db.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 249)
       INSERT INTO batches (job_id, batch_index, round, failed) SELECT '${id(3)}', i, 1, 1 FROM n`,
    );
    await db.run("UPDATE jobs SET end_time = '2026-01-01' WHERE job_id = ?", [id(3)]);
    expect(await retention.runOnce(NOW_MS)).toEqual([id(3)]);
    expect(deleted).toEqual([PRUNED_BATCHES_AT_ONCE, PRUNED_BATCHES_AT_ONCE, 50, 0]);
  });

  it("deletes what is known of batches that were split", async () => {
    const place = { file: 0, offset: 0, bytes: 0, rows: 0 };
    const parts = Array.from({ length: 250 }, (_, first) => ({
      ...({ first, next: first + 1, state: "guilty", attempts: 1, place } as const),
    }));
    const fault = { stage: "predict", type: "E", message: "m", traceback: "" };
    await saveParts(db, id(3), 0, parts);
    await saveFailedItems(db, id(3), 1, 0, { ...parts[0]!, cause: "fault", fault, source: undefined });
    await saveParts(db, id(2), 0, parts.slice(0, 2));
    await db.run("UPDATE jobs SET end_time = '2026-01-01' WHERE job_id = ?", [id(3)]);
    expect(await retention.runOnce(NOW_MS)).toEqual([id(3)]);
    expect(await partsOf(db, id(3), 0)).toEqual([]);
    expect(await failedItems(db, id(3), 0, -1, 10)).toEqual([]);
    expect(await partsOf(db, id(2), 0)).toHaveLength(2);
  });
});
