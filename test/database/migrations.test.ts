/** The step that moves inputs and configurations out of the rows of jobs, on SQLite and on PostgreSQL. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { listJobs } from "../../src/batch/records/job-lists.ts";
import { configText } from "../../src/batch/records/job-rows.ts";
import { jobTotals } from "../../src/batch/records/job-totals.ts";
import { inputIfKept, storedInput } from "../../src/batch/records/stored-input.ts";
import type { Database } from "../../src/database/database.ts";
import { migrate, schemaVersion } from "../../src/database/migrations.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { SCHEMA_STEPS } from "../../src/database/schema-steps.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { isPostgresInstalled, startPostgres } from "../harness/postgres.ts";

/** The schema before the step. */
const OLD = 11;
const JOBS = 60;
const id = (i: number) => `job-${String(i).padStart(3, "0")}`;
const prefix = (i: number, bytes: number) => `file:///${i}/${"x".repeat(bytes)}`;
/** One job in ten is pruned, one in ten has a configuration. */
const isPruned = (i: number) => i % 10 === 3;
const hasConfig = (i: number) => i % 10 === 7;

/** The database as the release before left it. */
async function fillOld(db: Database, bytes: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.run("CREATE TABLE schema_version (version INTEGER NOT NULL)");
    for (const step of SCHEMA_STEPS.slice(0, OLD) as (readonly string[])[])
      for (const statement of step) await tx.run(statement);
    await tx.run("INSERT INTO schema_version VALUES (?)", [OLD]);
    for (let i = 0; i < JOBS; i++) {
      const input = JSON.stringify({ kind: "lines", batch_size: 2, store_paths: [prefix(i, bytes)] });
      await tx.run(
        `INSERT INTO jobs (job_id, api_name, api_id, submission_json, config_json, workers, status, created_time,
           end_time, pruned_time, succeeded) VALUES (?, 'a', '1', ?, ?, 3, 'status_succeeded', 'then', 'then', ?, ?)`,
        [id(i), input, hasConfig(i) ? `{"i": ${i}.0}` : "{}", isPruned(i) ? "later" : null, i],
      );
    }
  });
}

async function expectMoved(db: Database, bytes: number): Promise<void> {
  expect(await schemaVersion(db)).toBe(SCHEMA_STEPS.length);
  const rows = await listJobs(db, "a", { limit: 2 * JOBS, before: undefined, status: "status_succeeded" });
  expect(rows.map((row) => [row.job_id, row.workers, row.succeeded])).toEqual(
    Array.from({ length: JOBS }, (_, i) => [id(i), 3, i]).reverse(),
  );
  for (let i = 0; i < JOBS; i++) {
    expect(await configText(db, id(i))).toBe(hasConfig(i) ? `{"i": ${i}.0}` : "{}");
    if (isPruned(i)) expect(await inputIfKept(db, id(i))).toBeUndefined();
    else expect(await storedInput(db, id(i))).toMatchObject({ store_paths: [prefix(i, bytes)] });
  }
  expect((await db.all("SELECT job_id FROM job_configs")).length).toBe(JOBS / 10);
  const counts = { jobs: JOBS, succeeded: (JOBS * (JOBS - 1)) / 2, failed: 0 };
  expect(await jobTotals(db)).toEqual([{ api: "a", status: "status_succeeded", ...counts }]);
}

/** Its transactions fail from the one after the first `allowed`, as if the process was killed there. */
function killedAfter(db: Database, allowed: number): Database {
  let left = allowed;
  return {
    all: (sql, params) => db.all(sql, params),
    run: (sql, params) => db.run(sql, params),
    transaction: (work) => (left-- > 0 ? db.transaction(work) : Promise.reject(new Error("killed"))),
    close: () => db.close(),
  };
}

describe("the migration of jobs with large submissions", () => {
  let close: () => unknown = () => {};
  afterEach(() => close());

  function openFile() {
    const directory = mkdtempSync(join(tmpdir(), "quern-migrations-"));
    const file = join(directory, "quern.db");
    const db = openSqliteDatabase(file);
    close = async () => {
      await db.close();
      rmSync(directory, { recursive: true });
    };
    return { db, file };
  }

  it("moves them, byte for byte, and the file hardly grows", async () => {
    const { db, file } = openFile();
    const bytes = 300_000;
    await fillOld(db, bytes);
    const size = async () => {
      await db.all("PRAGMA wal_checkpoint(TRUNCATE)");
      return statSync(file).size;
    };
    const before = await size();
    await migrate(db);
    await expectMoved(db, bytes);
    expect((await size()) - before).toBeLessThan(before / 2);
  });

  it("reports its progress every few seconds", async () => {
    const { db } = openFile();
    await fillOld(db, 10);
    // Each look at the clock comes two seconds after the one before.
    let ms = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (ms += 2_000));
    const told: number[] = [];
    await migrate(db, (rows) => told.push(rows)).finally(() => vi.restoreAllMocks());
    expect(told.length).toBeGreaterThan(2);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBeLessThanOrEqual(JOBS);
  });

  it("leaves the rows of jobs side by side, not each on the page of its former submission", async () => {
    const { db } = openFile();
    await fillOld(db, 300_000);
    const pages = async () =>
      (await db.all<{ pages: number }>("SELECT count(*) AS pages FROM dbstat WHERE name = 'jobs'"))[0]!.pages;
    expect(await pages()).toBeGreaterThan(JOBS);
    await migrate(db);
    expect(await pages()).toBeLessThan(JOBS / 5);
  });

  it.each([1, 2, 3])("continues after a crash in transaction %i", async (allowed) => {
    const { db } = openFile();
    await fillOld(db, 10);
    await expect(migrate(killedAfter(db, allowed))).rejects.toThrow("killed");
    expect(await schemaVersion(db)).toBeLessThan(SCHEMA_STEPS.length);
    await migrate(db);
    await expectMoved(db, 10);
  });

  it("continues if only some rows were moved", async () => {
    const { db } = openFile();
    await fillOld(db, 10);
    await migrate(killedAfter(db, 1)).catch(() => {});
    const step = SCHEMA_STEPS[OLD + 1]!;
    if (!("move" in step)) throw new Error("this is the step that moves rows");
    for (const i of [0, 1, 3, 7])
      await db.transaction(async (tx) => {
        for (const statement of step.move) await tx.run(statement, [id(i)]);
      });
    await migrate(db);
    await expectMoved(db, 10);
  });

  it("leaves a database that older releases refuse, also in the middle", async () => {
    const { db } = openFile();
    await fillOld(db, 10);
    await migrate(killedAfter(db, 1)).catch(() => {});
    // A release with the former steps refuses versions above their number.
    expect(await schemaVersion(db)).toBe(OLD + 1);
  });

  it.runIf(isPostgresInstalled)("does the same on PostgreSQL", async () => {
    const postgres = await startPostgres();
    const db = await connectPostgres({ url: postgres.url });
    close = async () => {
      await db.close();
      postgres.stop();
    };
    await fillOld(db, 10);
    await migrate(db);
    await expectMoved(db, 10);
  });
});
