/** A job whose end fails: it is tried again, until somebody has ended the job. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { reportFaultsTo } from "../../../src/base/boundary.ts";
import { type EndDeps, endForError } from "../../../src/batch/end/finish-job.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { eventually } from "../../harness/eventually.ts";

let directory: string;
let db: Database;
let failures: number;
let stopping: AbortController;
let deps: EndDeps;
let faults: string[];
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "quern-end-"));
  db = openSqliteDatabase(join(directory, "quern.db"));
  await migrate(db);
  await db.run(
    "INSERT INTO jobs (job_id, api_name, api_id, workers, status, round, created_time) VALUES ('j', 'a', '1', 1, 'status_running', 3, '')",
  );
  [failures, stopping, faults] = [0, new AbortController(), []];
  reportFaultsTo((error) => void faults.push(error.message));
  const failing = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      if (failures-- > 0) throw new Error("a trigger says no");
      return work(...args);
    };
  };
  const transaction = failing((work: Parameters<Database["transaction"]>[0]) => db.transaction(work));
  const failingDb = { ...methods(db), run: failing((...args) => db.run(...args)), transaction } as Database;
  deps = { db: failingDb, store: {} as never, reach: () => {}, stopping: stopping.signal, jobLog: () => {} };
});
afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true });
});

const methods = (of: Database) => ({ all: of.all.bind(of), close: of.close.bind(of) });
const row = async () => (await db.all<{ status: string; end_time: string | null }>("SELECT * FROM jobs"))[0]!;

it("ends once the database lets it", async () => {
  failures = 2;
  endForError(deps, { job_id: "j", round: 3 }, new Error("broken"));
  await eventually("it has ended", async () => (await row()).end_time !== null, 10_000);
  expect((await row()).status).toBe("status_unexpected_error");
  expect(faults).toEqual(Array(2).fill("a trigger says no"));
});

it("is left alone if it was resumed meanwhile, or the server stops", async () => {
  endForError(deps, { job_id: "j", round: 2 }, new Error("broken"));
  failures = Number.POSITIVE_INFINITY;
  endForError(deps, { job_id: "j", round: 3 }, new Error("broken"));
  await eventually("it has failed", () => faults.length > 0);
  stopping.abort();
  await eventually("it gives up", () => faults.length > 1);
  failures = 0;
  expect((await row()).status).toBe("status_running");
});
