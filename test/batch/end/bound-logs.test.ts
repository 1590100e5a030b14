/** The logs of an API's jobs together: real files and a real database. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { boundLogs } from "../../../src/batch/end/bound-logs.ts";
import { AGED_JOBS_AT_ONCE } from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { appendLogLine } from "../../../src/observe/log-files.ts";

const id = (i: number) => `job-${String(i).padStart(5, "0")}`;

describe("the logs of the jobs of an API", () => {
  let directory: string;
  let db: Database;
  const logDirectory = (job: string) => join(directory, "logs", job);
  const bound = (logBytesMax: number, database = db) =>
    boundLogs(
      {
        ...{ db: database, logDirectory, logBytesMax },
        jobLog: (job, line) => appendLogLine(join(logDirectory(job), "server.log"), line),
      },
      () => false,
    );
  const add = async (job: number, api: string, bytes: number, ended = "'2026-01-01'") => {
    await db.run(
      `INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time, end_time)
       VALUES (?, ?, '1', 1, 'status_succeeded', '', ${ended})`,
      [id(job), api],
    );
    mkdirSync(logDirectory(id(job)), { recursive: true });
    for (const name of ["b-1.log", "b-1.log.1"])
      writeFileSync(join(logDirectory(id(job)), name), Buffer.alloc(bytes / 2));
  };
  const kept = (jobs: number[]) => jobs.filter((job) => existsSync(join(logDirectory(id(job)), "b-1.log")));
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-bound-logs-"));
    db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
    for (const name of ["a", "b"])
      await db.run(
        `INSERT INTO api_versions (name, api_id, predictor_id, spec_json, project_id, deployed_time)
         VALUES ('${name}', '1', 'p', '{}', '', '')`,
      );
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  it("are removed beyond the size, those of the oldest ended jobs first, and say so", async () => {
    for (const job of [0, 1, 2, 3]) await add(job, "a", 10_000);
    await add(4, "b", 10_000);
    expect(await bound(50_000)).toBe(0);
    expect(await bound(20_000)).toBe(2);
    expect(kept([0, 1, 2, 3, 4])).toEqual([2, 3, 4]);
    expect(readFileSync(join(logDirectory(id(0)), "server.log"), "utf8")).toContain("--keep-logs");
    expect(await bound(20_000)).toBe(0);
  });

  it("stay if a new round of the job begins while they are looked for", async () => {
    for (const job of [0, 1, 2]) await add(job, "a", 10_000);
    const redriven: Database = Object.assign(Object.create(db), {
      all: async (...statement: Parameters<Database["all"]>) => {
        const rows = await db.all(...statement);
        await db.run("UPDATE jobs SET end_time = NULL WHERE job_id = ?", [id(0)]);
        return rows;
      },
    });
    expect(await bound(10_000, redriven)).toBe(1);
    expect(kept([0, 1, 2])).toEqual([0, 2]);
  });

  it("of the newest stay, and of older ones those that fit beside it", async () => {
    for (const [job, bytes] of [2_000, 9_000, 4_000].entries()) await add(job, "a", bytes);
    expect(await bound(3_000)).toBe(2);
    expect(kept([0, 1, 2])).toEqual([2]);
    for (const [job, bytes] of [2_000, 9_000, 4_000].entries()) await add(job + 3, "b", bytes);
    expect(await bound(7_000)).toBe(1);
    expect(kept([3, 4, 5])).toEqual([3, 5]);
  });

  it("of a running job stay, and do not count", async () => {
    for (const job of [0, 1]) await add(job, "a", 10_000);
    await add(2, "a", 10_000, "NULL");
    expect(await bound(20_000)).toBe(0);
    expect(await bound(19_000)).toBe(1);
    expect(kept([0, 1, 2])).toEqual([1, 2]);
  });

  it("are found among many jobs", async () => {
    for (let job = 0; job < 2 * AGED_JOBS_AT_ONCE + 1; job++) await add(job, "a", 2_000);
    expect(await bound(2_000 * AGED_JOBS_AT_ONCE)).toBe(AGED_JOBS_AT_ONCE + 1);
  });
});
