/** Rows of failed batches may be large and many: no statement reads those that it does not return. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chargedAttempts, saveFailedAttempt } from "../../../src/batch/records/batch-rows.ts";
import {
  countDeadly,
  failedBatches,
  failureGroups,
  firstDeadly,
} from "../../../src/batch/records/failed-batches.ts";
import { addInterruptions, condemned, suspects } from "../../../src/batch/records/interrupted-batches.ts";
import type { Database, SqlValue, Statements } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

const FAULT = { stage: "predict" as const, type: "E", message: "m", traceback: "t" };

describe("the rows of a job with many failed batches", () => {
  let db: Database;
  let asked: [string, readonly SqlValue[]][];
  let recording: Statements;
  beforeEach(async () => {
    db = openSqliteDatabase(":memory:");
    await migrate(db);
    asked = [];
    const keep =
      <T>(run: (sql: string, params?: readonly SqlValue[]) => Promise<T>) =>
      (sql: string, params: readonly SqlValue[] = []) => {
        asked.push([sql, params]);
        return run(sql, params);
      };
    recording = { all: keep(db.all.bind(db)) as Statements["all"], run: keep(db.run.bind(db)) };
  });
  afterEach(() => db.close());

  /** How SQLite runs the statements that `work` makes. */
  const plans = async (work: (on: Statements) => Promise<unknown>): Promise<string[]> => {
    asked = [];
    await work(recording);
    const rows = await Promise.all(
      asked.map(([sql, params]) => db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)),
    );
    return rows.flat().map(({ detail }) => detail);
  };
  /** Rows as many attempts leave them. */
  const fill = (count: number, failed: 0 | 1) =>
    db.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
       INSERT INTO batches (job_id, batch_index, round, attempts, failed, error_json, error_group)
       SELECT 'job-1', i, 1, 1 + i % 2, ${failed}, '{}', 'E' FROM n`,
    );

  it("are not read by the end of the job, which counts those whose worker died", async () => {
    expect(await plans((on) => countDeadly(on, "job-1"))).toEqual([
      "SEARCH batches USING COVERING INDEX batches_deadly (job_id=?)",
    ]);
    // In the order of the index, so that one row is read.
    expect(await plans((on) => firstDeadly(on, "job-1"))).toEqual([
      "SEARCH batches USING INDEX batches_deadly (job_id=?)",
    ]);
    expect(await plans((on) => failureGroups(on, "job-1", 10))).toEqual([
      "SEARCH batches USING COVERING INDEX batches_by_error (job_id=?)",
    ]);
  });

  it("are not read by the start of its dispatch", async () => {
    expect(await plans((on) => condemned(on, "job-1"))).toEqual([
      "SEARCH batches USING COVERING INDEX batches_in_hand (job_id=? AND in_hand=? AND failed=?)",
    ]);
    expect(await plans((on) => suspects(on, "job-1", 3))).toEqual([
      "SEARCH batches USING COVERING INDEX batches_interrupted (job_id=? AND interruptions>?)",
    ]);
    expect(await plans((on) => chargedAttempts(on, "job-1"))).toEqual([
      "SEARCH batches USING COVERING INDEX batches_charged (job_id=? AND batch_index>?)",
    ]);
  });

  it("are not read by the start of a controller", async () => {
    const read = await plans((on) => addInterruptions(on, []));
    expect(read.filter((plan) => plan.includes(" batches"))).toEqual([
      expect.stringMatching(/ batches USING (COVERING )?INDEX batches_in_hand/),
      expect.stringMatching(/ batches USING (COVERING )?INDEX batches_in_hand/),
    ]);
  });

  it("gives the attempts of all batches, some thousands in one statement", async () => {
    await fill(12_000, 0);
    asked = [];
    const attempts = await chargedAttempts(recording, "job-1");
    expect([attempts.size, attempts.get(0), attempts.get(11_999)]).toEqual([12_000, 1, 2]);
    expect(asked.length).toBe(3);
  });

  it("passes the batches that will be tried again in pieces, to find those that have failed", async () => {
    await fill(1_000, 0);
    const last = (cause: "fault" | "death" | "oom", batch_index: number) =>
      saveFailedAttempt(db, "job-1", 1, { batch_index, cause, isFinal: true, fault: FAULT });
    for (const batch of [700, 701, 900]) await last("fault", batch);
    asked = [];
    const found = async (after: number, limit: number) =>
      (await failedBatches(recording, "job-1", after, limit)).map(({ batch_index }) => batch_index);
    expect(await found(-1, 1)).toEqual([700]);
    expect(asked.map(([, params]) => params.at(-1))).toEqual([1, ...Array.from({ length: 7 }, () => 100)]);
    expect(await found(-1, 2)).toEqual([700, 701]);
    expect(await found(701, 20)).toEqual([900]);
    expect(await found(900, 20)).toEqual([]);
    expect(await found(999, 20)).toEqual([]);
  });

  it("counts deaths and finds the first, one out of memory before all others", async () => {
    await fill(10, 1);
    const die = (cause: "death" | "oom", batch_index: number, isFinal: boolean) =>
      saveFailedAttempt(db, "job-1", 1, { batch_index, cause, isFinal, fault: FAULT });
    await die("death", 3, true);
    await die("death", 2, true);
    await die("oom", 1, false);
    expect(await firstDeadly(db, "job-1")).toMatchObject({ batch_index: 2 });
    await die("oom", 9, true);
    await die("oom", 8, true);
    expect(await firstDeadly(db, "job-1")).toMatchObject({ batch_index: 8 });
    expect(await countDeadly(db, "job-1")).toEqual({ failedByDeath: 2, failedByOom: 2 });
  });
});
