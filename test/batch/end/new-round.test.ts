/** New rounds of a job with many failed batches, over a real database. */
import { beforeEach, describe, expect, it } from "vitest";
import { NewRounds } from "../../../src/batch/end/new-round.ts";
import { partsOf, saveFailedItems, saveParts } from "../../../src/batch/isolate/isolated-rows.ts";
import { saveFailedAttempt } from "../../../src/batch/records/batch-rows.ts";
import { insertJob, jobById } from "../../../src/batch/records/job-rows.ts";
import { noteBegun, noteOutcome, roundsOf } from "../../../src/batch/rounds/round-rows.ts";
import { NOBODY } from "../../../src/contracts/keys.ts";
import { shownRounds } from "../../../src/control/jobs/job-round-list.ts";
import type { Database, Statements } from "../../../src/database/database.ts";
import {
  appendSegments,
  findSegment,
  markSettled,
  unsettledSegments,
  writeSettled,
} from "../../../src/database/segment-rows.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

const JOB = "job";
const rounds = (db: Database, assertDeployed: () => Promise<string | null> = async () => null) =>
  new NewRounds(db, assertDeployed);
const BATCHES = 500;
/** The number of batches of one segment. */
const SEGMENT = 200;

describe("a redrive", () => {
  let db: Database;
  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    await db.transaction(endedJob);
    return temporary.remove;
  });

  /** All its batches failed: the even ones with "even", the odd ones with "odd". */
  async function endedJob(tx: Statements): Promise<void> {
    await insertJob(tx, {
      job_id: JOB,
      api_name: "jobs",
      api_id: "v1",
      submission_json: "{}",
      config_json: "{}",
      workers: 1,
      timeout_s: null,
      max_receive_count: 1,
      dead_letter_arn: null,
      dead_letter_queue: null,
      created_time: "2026-01-01T00:00:00.000000000Z",
      has_older_names: 0,
    });
    for (let first_batch = 0; first_batch < BATCHES; first_batch += SEGMENT) {
      const batch_count = Math.min(SEGMENT, BATCHES - first_batch);
      const counts = { batch_count, item_count: batch_count };
      await appendSegments(tx, JOB, [{ first_batch, ...counts, ranges: [], has_blank_lines: false }]);
      const segment = (await findSegment(tx, JOB, first_batch))!;
      for (let batch = first_batch; batch < first_batch + batch_count; batch++) {
        markSettled(segment, batch);
        const message = batch % 2 === 0 ? "even" : "odd";
        const fault = {
          type: "ValueError",
          message,
          traceback: "x".repeat(1_000),
          stage: "predict" as const,
        };
        await saveFailedAttempt(tx, JOB, 1, { batch_index: batch, cause: "fault", fault, isFinal: true });
      }
      await writeSettled(tx, JOB, segment);
    }
    await tx.run(
      `UPDATE jobs SET status = 'status_completed_with_failures', closing = status, total_batch_count = ?,
         failed_batches = ?, end_time = created_time`,
      [BATCHES, BATCHES],
    );
  }

  /** The first batch was split: its items are guilty, but for the first. */
  async function splitBatch(items: number): Promise<void> {
    await db.run("UPDATE jobs SET isolates = 1", []);
    const fault = { type: "E", message: "x", traceback: "x".repeat(32 * 1024), stage: "predict" as const };
    await db.transaction(async (tx) => {
      const parts = Array.from({ length: items }, (_, first) => {
        const state = first === 0 ? ("good" as const) : ("guilty" as const);
        return { first, next: first + 1, state, attempts: 1 };
      });
      await saveParts(tx, JOB, 0, parts);
      for (let first = 1; first < items; first++) {
        const failed = { first, next: first + 1, attempts: 1, cause: "fault" as const, fault };
        await saveFailedItems(tx, JOB, 1, 0, { ...failed, source: undefined });
      }
    });
  }

  /** The database, which says how many rows of `failed_items` each commit deletes. It fails after `left` commits. */
  function counted(deleted: number[], left = Number.POSITIVE_INFINITY): Database {
    return {
      ...{ all: db.all.bind(db), run: db.run.bind(db), close: db.close.bind(db) },
      transaction: (work) => {
        if (left-- === 0) return Promise.reject(new Error("cut off"));
        return db.transaction(async (tx) => {
          let rows = 0;
          const run: Statements["run"] = async (sql, values) => {
            const changes = await tx.run(sql, values);
            if (sql.includes("DELETE FROM failed_items")) rows += changes;
            return changes;
          };
          const result = await work({ all: tx.all.bind(tx), run });
          deleted.push(rows);
          return result;
        });
      },
    };
  }

  const failedItemRows = async () => (await db.all("SELECT first_item FROM failed_items")).length;

  it("forgets the failures of a split batch few at a time", async () => {
    await splitBatch(5_000);
    const deleted: number[] = [];
    expect(await rounds(counted(deleted)).redrive(JOB, {}, NOBODY)).toBe(BATCHES);
    expect(deleted.reduce((sum, rows) => sum + rows, 0)).toBe(4_999);
    expect(Math.max(...deleted)).toBeLessThanOrEqual(100);
    expect(await failedItemRows()).toBe(0);
    expect(await partsOf(db, JOB, 0)).toMatchObject([
      { first: 0, next: 1, state: "good" },
      { first: 1, next: 5_000, state: "open" },
    ]);
  }, 30_000);

  it.each([0, 1, 2, 4, 5])("continues with a split batch after it was cut off at commit %i", async (left) => {
    await splitBatch(400);
    await expect(rounds(counted([], left)).redrive(JOB, { error: "x" }, NOBODY)).rejects.toThrow("cut off");
    expect(await jobById(db, JOB)).toMatchObject({ round: 1, failed_batches: BATCHES });
    expect(await failedRows()).toBe(BATCHES);
    // Also if its error is not the one that the next redrive is about.
    const other = left === 0 ? "x" : "none has this";
    expect(await rounds(db).redrive(JOB, { error: other }, NOBODY)).toBe(1);
    expect(await failedItemRows()).toBe(0);
    expect(await partsOf(db, JOB, 0)).toMatchObject([
      { state: "good" },
      { first: 1, next: 400, state: "open" },
    ]);
    expect(await unsettled()).toBe(1);
    expect(await jobById(db, JOB)).toMatchObject({ status: "status_running", failed_batches: BATCHES - 1 });
  });

  const unsettled = async () =>
    (await unsettledSegments(db, JOB, 0, BATCHES)).reduce(
      (sum, { batch_count, settled_count }) => sum + batch_count - settled_count,
      0,
    );
  const failedRows = async () => (await db.all("SELECT 1 FROM batches WHERE failed = 1")).length;

  it("puts back all failed batches, or those whose error contains the text", async () => {
    expect(await rounds(db).redrive(JOB, { error: "odd" }, NOBODY)).toBe(BATCHES / 2);
    expect(await unsettled()).toBe(BATCHES / 2);
    expect(await failedRows()).toBe(BATCHES / 2);
    const job = await jobById(db, JOB);
    expect(job).toMatchObject({ status: "status_running", round: 2, failed_batches: BATCHES / 2 });
  });

  it("lets other work use the database meanwhile", async () => {
    let isOver = false;
    const redrive = rounds(db)
      .redrive(JOB, {}, NOBODY)
      .finally(() => {
        isOver = true;
      });
    let statements = 0;
    for (; !isOver; statements++) await db.all("SELECT 1");
    expect(await redrive).toBe(BATCHES);
    expect(statements).toBeGreaterThan(BATCHES / 50);
  });

  it("that searches errors reads few of them in a turn of the event loop, however many search at once", async () => {
    let [rowsInTurn, most] = [0, 0];
    const watched: Database = {
      ...{ run: db.run.bind(db), close: db.close.bind(db), transaction: db.transaction.bind(db) },
      all: async (sql, values) => {
        const rows = await db.all(sql, values);
        if (!sql.includes("error_json")) return rows as never;
        if (rowsInTurn === 0) setImmediate(() => (rowsInTurn = 0));
        rowsInTurn += rows.length;
        most = Math.max(most, rowsInTurn);
        return rows as never;
      },
    };
    const searching = () =>
      expect(rounds(watched).redrive(JOB, { error: "none has this" }, NOBODY)).rejects.toThrow("none of its");
    await Promise.all(Array.from({ length: 10 }, searching));
    // Five in each statement, and the end of a turn may be counted after the next statement.
    expect(most).toBeLessThanOrEqual(10);
  });

  it("is refused while another redrive of the job is in progress", async () => {
    const same = rounds(db);
    const first = same.redrive(JOB, {}, NOBODY);
    await expect(same.redrive(JOB, {}, NOBODY)).rejects.toThrow("one is being prepared");
    await expect(same.resume(JOB, NOBODY)).rejects.toThrow("one is being prepared");
    expect(await first).toBe(BATCHES);
  });

  it("leaves correct counts if it is interrupted, and the job can be resumed", async () => {
    let left = 5;
    const failing: Database = {
      ...{ all: db.all.bind(db), run: db.run.bind(db), close: db.close.bind(db) },
      transaction: (work) => {
        if (left-- === 0) return Promise.reject(new Error("cut off"));
        return db.transaction(work);
      },
    };
    await expect(rounds(failing).redrive(JOB, {}, NOBODY)).rejects.toThrow("cut off");
    const failed = await failedRows();
    expect(failed).toBeGreaterThan(0);
    expect(await unsettled()).toBe(BATCHES - failed);
    expect(await jobById(db, JOB)).toMatchObject({ round: 1, failed_batches: failed });
    await expect(rounds(db).redrive(JOB, {}, NOBODY)).rejects.toThrow("resume it first");
    const deleted = async () => Promise.reject(new Error("its API is deleted"));
    await expect(rounds(db, deleted).resume(JOB, NOBODY)).rejects.toThrow("its API is deleted");
    await rounds(db).resume(JOB, NOBODY);
    expect(await jobById(db, JOB)).toMatchObject({ status: "status_running", round: 2 });
    // Its list of rounds has what had failed before the interrupted redrive put some of it back.
    expect(await roundsOf(db, JOB)).toMatchObject([
      { round: 1, failed_after: BATCHES },
      { round: 2, how: "resumed", failed_before: failed },
    ]);
  });

  it("keeps how each round began and ended, by whom, with the counts before anything was put back", async () => {
    const by = { id: "k-1", name: "the night shift" };
    const ended = { ...(await jobById(db, JOB))! };
    await expect(rounds(db).redrive(JOB, { error: "none has this" }, by)).rejects.toThrow("none of its");
    await rounds(db).redrive(JOB, { error: "odd" }, by);
    const stored = await roundsOf(db, JOB);
    expect(stored).toMatchObject([
      {
        ...{ round: 1, how: "submitted", by_id: null, begun_time: ended.created_time, status: ended.status },
        ...{ succeeded_before: 0, failed_before: 0, succeeded_after: 0, failed_after: BATCHES },
      },
      {
        ...{ round: 2, how: "redriven", by_id: "k-1", by_name: "the night shift", status: null },
        ...{ selection: 'errors with "odd"', succeeded_before: 0, failed_before: BATCHES / 2 },
      },
    ]);
    const shown = [...shownRounds((await jobById(db, JOB))!, stored)];
    expect(shown).toMatchObject([
      { batches: BATCHES, succeeded: 0, failed: BATCHES, ended_time: ended.end_time },
      { batches: BATCHES / 2, succeeded: 0, failed: 0, ended_time: null, status: "status_running" },
    ]);
  });

  it("keeps the first round and the last 200", async () => {
    const job = (await jobById(db, JOB))!;
    await noteOutcome(db, job);
    const begun = { how: "resumed", by: NOBODY, selection: null } as const;
    for (let round = 1; round <= 205; round++)
      await db.transaction((tx) => noteBegun(tx, { ...job, round }, begun, job.created_time));
    const numbers = (await roundsOf(db, JOB)).map(({ round }) => round);
    expect(numbers).toEqual([1, ...Array.from({ length: 200 }, (_, at) => at + 7)]);
  });

  it("of a job whose records are deleted meanwhile finds no job", async () => {
    await db.run("DELETE FROM jobs");
    await expect(rounds(db).resume(JOB, NOBODY)).rejects.toMatchObject({ code: "job_not_found" });
    await expect(rounds(db).redrive(JOB, {}, NOBODY)).rejects.toMatchObject({ code: "job_not_found" });
  });
});
