/** When a running job may write to the server's disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Part } from "../../src/base/files/leave-free.ts";
import { admitOf, admitRowsOf } from "../../src/batch/admit.ts";
import type { JobDeps } from "../../src/batch/job-deps.ts";
import type { Database } from "../../src/database/database.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

/** No disk has that much left. */
const NEVER: Part = { name: "a test", share: 2, bytesMax: Number.POSITIVE_INFINITY };
const dataDir = mkdtempSync(join(tmpdir(), "quern-admit-"));
let db: Database;
let waits: string[];

function run(state: { isEnding?: boolean; isPausing?: boolean } = {}) {
  const deps = { dataDir, db, isOnDisk: { outputs: true, database: true } } as Partial<JobDeps> as JobDeps;
  const onWait = (error: unknown) => waits.push((error as Error).message);
  const diskWait = { onWait, signal: new AbortController().signal, waiting: new Set() };
  return { deps, diskWait, isEnding: false, isPausing: false, ...state };
}

beforeAll(async () => {
  db = await openSqliteDatabase(join(dataDir, "test.db"));
  await db.run("CREATE TABLE filler (bytes BLOB)");
  await db.run("INSERT INTO filler VALUES (zeroblob(1000000))");
  await db.run("DELETE FROM filler");
});
beforeEach(() => {
  waits = [];
});
afterAll(async () => {
  await db.close();
  rmSync(dataDir, { recursive: true });
});

test("rows take free pages of the database, however full the disk is", async () => {
  expect(await admitRowsOf(run())(900_000, NEVER)).toBe(true);
  expect(waits).toEqual([]);
});

test("more than the free pages waits, until the job is to end", async () => {
  const stopped = run();
  const admitted = admitRowsOf(stopped)(2_000_000, NEVER);
  await expect.poll(() => waits).toEqual([expect.stringContaining("a test leave")]);
  expect([...stopped.diskWait.waiting]).toHaveLength(1);
  stopped.isEnding = true;
  expect(await admitted).toBe(false);
  expect([...stopped.diskWait.waiting]).toEqual([]);
});

test("a job that pauses leaves less, so that its batches in hand can end", async () => {
  expect(await admitOf(run({ isPausing: true }))(2_000_000, NEVER)).toBe(true);
});
