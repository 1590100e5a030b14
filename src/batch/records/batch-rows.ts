/** The rows of single batches. Only those that failed, were interrupted or are recorded as in hand have one. */

import { describeFault } from "../../contracts/faults.ts";
import { first, type Statements } from "../../database/database.ts";
import type { WorkerFault } from "../../protocol/messages.ts";

export interface FailedAttempt {
  batch_index: number;
  /** `death` and `oom`: the worker died, `oom` for lack of memory. `fault`: an exception or a timeout. */
  cause: "fault" | "death" | "oom";
  fault: WorkerFault;
  /** The batch has no attempt left. */
  isFinal: boolean;
}

export async function saveFailedAttempt(
  tx: Statements,
  jobId: string,
  round: number,
  { batch_index, cause, fault, isFinal }: FailedAttempt,
): Promise<void> {
  await tx.run(
    `INSERT INTO batches (job_id, batch_index, round, attempts, failed, by_death, by_oom, error_json, error_group)
     VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)
     ON CONFLICT (job_id, batch_index) DO UPDATE SET round = excluded.round, attempts = batches.attempts + 1,
       failed = excluded.failed, by_death = excluded.by_death, by_oom = excluded.by_oom, error_json = excluded.error_json,
       error_group = excluded.error_group, in_hand = 0`,
    [
      jobId,
      batch_index,
      round,
      isFinal ? 1 : 0,
      cause === "death" ? 1 : 0,
      cause === "oom" ? 1 : 0,
      JSON.stringify(fault),
      errorGroup(fault),
    ],
  );
}

const GROUP_LENGTH_MAX = 200;

/** Errors that differ only in numbers form one group: they are the same mistake on different data. */
export function errorGroup({ type, message }: { type: string; message: string }): string {
  const [line = ""] = message.split("\n", 1);
  return describeFault({ type, message: line.replace(/\d+(\.\d+)?/g, "#") }).slice(0, GROUP_LENGTH_MAX);
}

/** Attempts already charged to unsettled batches, for those that have any. */
export async function chargedAttempts(db: Statements, jobId: string): Promise<Map<number, number>> {
  const rows = await db.all<{ batch_index: number; attempts: number }>(
    "SELECT batch_index, attempts FROM batches WHERE job_id = ? AND failed = 0 AND attempts > 0",
    [jobId],
  );
  return new Map(rows.map(({ batch_index, attempts }) => [batch_index, attempts]));
}

/**
 * Whether a batch was recorded as in hand before it went out. `alone`: it was interrupted too often and runs with
 * nothing else in hand. If the server dies then, this batch is charged.
 */
export type InHand = "no" | "recorded" | "alone";
const IN_HAND: Record<InHand, number> = { no: 0, recorded: 1, alone: 2 };

export async function saveInHand(
  tx: Statements,
  jobId: string,
  round: number,
  batchIndex: number,
  inHand: InHand,
): Promise<void> {
  if (inHand === "no") return saveBack(tx, jobId, batchIndex);
  await tx.run(
    `INSERT INTO batches (job_id, batch_index, round, in_hand) VALUES (?, ?, ?, ?)
     ON CONFLICT (job_id, batch_index) DO UPDATE SET in_hand = excluded.in_hand`,
    [jobId, batchIndex, round, IN_HAND[inHand]],
  );
}

async function saveBack(tx: Statements, jobId: string, batchIndex: number): Promise<void> {
  const which = "job_id = ? AND batch_index = ?";
  await tx.run(`UPDATE batches SET in_hand = 0 WHERE ${which}`, [jobId, batchIndex]);
  // Delete the row if it records nothing else.
  await tx.run(`DELETE FROM batches WHERE ${which} AND attempts = 0 AND interruptions = 0`, [
    jobId,
    batchIndex,
  ]);
}

/**
 * Counts the batches that were in hand when a former controller died, once each: those that were recorded, and those
 * that notes name. A batch that was alone is not counted but stays recorded: it is charged (`condemned`), unless its
 * job is ending.
 */
export async function addInterruptions(
  tx: Statements,
  noted: readonly { job_id: string; batch_index: number }[],
): Promise<void> {
  for (const { job_id, batch_index } of noted)
    await tx.run(
      `INSERT INTO batches (job_id, batch_index, round, interruptions)
       SELECT job_id, CAST(? AS INTEGER), round, 1 FROM jobs WHERE job_id = ? AND closing IS NULL
       ON CONFLICT (job_id, batch_index) DO UPDATE SET interruptions = batches.interruptions + 1
       WHERE batches.in_hand = 0`,
      [batch_index, job_id],
    );
  await tx.run("UPDATE batches SET interruptions = interruptions + 1, in_hand = 0 WHERE in_hand = 1");
  await tx.run(
    `UPDATE batches SET in_hand = 0
     WHERE in_hand > 0 AND job_id IN (SELECT job_id FROM jobs WHERE closing IS NOT NULL)`,
  );
}

/** Batches that were alone in hand when the server died: each is charged for that attempt. */
export async function condemned(db: Statements, jobId: string): Promise<Set<number>> {
  const rows = await db.all<{ batch_index: number }>(
    "SELECT batch_index FROM batches WHERE job_id = ? AND failed = 0 AND in_hand = ?",
    [jobId, IN_HAND.alone],
  );
  return new Set(rows.map((row) => row.batch_index));
}

/** Batches that have been interrupted too often: each runs alone, and is charged the next time. */
export async function suspects(
  db: Statements,
  jobId: string,
  interruptionsMax: number,
): Promise<Set<number>> {
  const rows = await db.all<{ batch_index: number }>(
    "SELECT batch_index FROM batches WHERE job_id = ? AND failed = 0 AND interruptions >= ?",
    [jobId, interruptionsMax],
  );
  return new Set(rows.map((row) => row.batch_index));
}

/**
 * Counts the finally failed batches whose worker died in them: `failedByOom` for lack of memory, `failedByDeath` the
 * others.
 */
export async function countDeadly(
  db: Statements,
  jobId: string,
): Promise<{ failedByDeath: number; failedByOom: number }> {
  const row = await first<{ deaths: number | null; ooms: number | null }>(
    db,
    "SELECT sum(by_death) AS deaths, sum(by_oom) AS ooms FROM batches WHERE job_id = ? AND failed = 1",
    [jobId],
  );
  return { failedByDeath: Number(row?.deaths ?? 0), failedByOom: Number(row?.ooms ?? 0) };
}

/** The first batch that finally failed because its worker died. Those out of memory come first. */
export function firstDeadly(
  db: Statements,
  jobId: string,
): Promise<{ batch_index: number; error_json: string } | undefined> {
  return first(
    db,
    "SELECT batch_index, error_json FROM batches WHERE job_id = ? AND failed = 1 AND by_death + by_oom > 0 ORDER BY by_oom DESC, batch_index LIMIT 1",
    [jobId],
  );
}

export interface FailedBatchRow {
  batch_index: number;
  attempts: number;
  error_json: string;
  letter_error: string | null;
}

/** Failed batches after `after`, in order. */
export function failedBatches(
  db: Statements,
  jobId: string,
  after: number,
  limit: number,
): Promise<FailedBatchRow[]> {
  return db.all<FailedBatchRow>(
    "SELECT batch_index, attempts, error_json, letter_error FROM batches WHERE job_id = ? AND failed = 1 AND batch_index > ? ORDER BY batch_index LIMIT ?",
    [jobId, after, limit],
  );
}

export interface FailureGroup {
  batches: number;
  first_batch_index: number;
}

/** Rows of an index that are counted in one statement, which takes a few milliseconds. */
const COUNTED_AT_ONCE = 5_000;

/** Failed batches counted by their errors, the most frequent first. In pieces: a job may have millions of them. */
export async function failureGroups(db: Statements, jobId: string, limit: number): Promise<FailureGroup[]> {
  let groups: FailureGroup[] = [];
  const keep = () => {
    groups.sort((a, b) => b.batches - a.batches || a.first_batch_index - b.first_batch_index);
    groups = groups.slice(0, limit);
  };
  let last: { error_group: string; batch_index: number } | undefined;
  for (;;) {
    const rows = await rowsByGroup(db, jobId, last);
    for (const { error_group, batch_index } of rows) {
      if (last?.error_group === error_group) groups.at(-1)!.batches++;
      else {
        // Trim only here: the last group is complete.
        if (groups.length >= 4 * limit) keep();
        groups.push({ batches: 1, first_batch_index: batch_index });
      }
      last = { error_group, batch_index };
    }
    if (rows.length < COUNTED_AT_ONCE) break;
  }
  keep();
  return groups;
}

/**
 * Failed batches by error group, after `last`. An index covers all columns and finds the place to begin. A failed batch
 * always has a group.
 */
function rowsByGroup(
  db: Statements,
  jobId: string,
  last: { error_group: string; batch_index: number } | undefined,
): Promise<{ error_group: string; batch_index: number }[]> {
  const after = last === undefined ? "" : "AND (error_group, batch_index) > (?, ?)";
  return db.all(
    `SELECT error_group, batch_index FROM batches
     WHERE job_id = ? AND failed = 1 ${after} ORDER BY error_group, batch_index LIMIT ?`,
    [jobId, ...(last === undefined ? [] : [last.error_group, last.batch_index]), COUNTED_AT_ONCE],
  );
}

/** Records that SQS permanently refused the message about a batch. */
export async function setLetterError(
  tx: Statements,
  letter: { job_id: string; batch_index: number; round: number },
  reason: string,
): Promise<void> {
  await tx.run("UPDATE batches SET letter_error = ? WHERE job_id = ? AND batch_index = ? AND round = ?", [
    reason,
    letter.job_id,
    letter.batch_index,
    letter.round,
  ]);
}

/** Deletes the rows of these batches, as if they had never run. */
export async function forgetBatches(
  tx: Statements,
  jobId: string,
  batches: readonly number[],
): Promise<void> {
  for (const batch of batches)
    await tx.run("DELETE FROM batches WHERE job_id = ? AND batch_index = ?", [jobId, batch]);
}
