/** The rows of single batches: only those that failed or lost their worker have one. */

import { describeFault } from "../contracts/faults.ts";
import { first, type Statements } from "../database/database.ts";
import type { WorkerFault } from "../protocol/messages.ts";

export interface FailedAttempt {
  batch_index: number;
  /** `death` and `oom`: the worker died in it; `oom`, for memory. The rest are exceptions and time-outs. */
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

/** Errors that differ in numbers only are one: the same mistake in other rows. */
export function errorGroup({ type, message }: { type: string; message: string }): string {
  const [line = ""] = message.split("\n", 1);
  return describeFault({ type, message: line.replace(/\d+(\.\d+)?/g, "#") }).slice(0, GROUP_LENGTH_MAX);
}

/** Attempts that unfinished batches have been charged, those that failed before. */
export async function chargedAttempts(db: Statements, jobId: string): Promise<Map<number, number>> {
  const rows = await db.all<{ batch_index: number; attempts: number }>(
    "SELECT batch_index, attempts FROM batches WHERE job_id = ? AND failed = 0 AND attempts > 0",
    [jobId],
  );
  return new Map(rows.map(({ batch_index, attempts }) => [batch_index, attempts]));
}

/**
 * A batch that is recorded as in hand before it goes out. `alone`: it was interrupted too often, and nothing else is in hand
 * meanwhile; whatever takes the server down then is charged to it.
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
  // A row that says nothing more.
  await tx.run(`DELETE FROM batches WHERE ${which} AND attempts = 0 AND interruptions = 0`, [
    jobId,
    batchIndex,
  ]);
}

/**
 * Counts the batches that were in hand when a former controller died, once each: those that were recorded, and those that notes
 * name. One that was alone is not counted but stays recorded: it is charged (`condemned`), unless its job is ending.
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

/** Of the batches that finally failed, those whose worker died in them: for memory, and otherwise. */
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

/** The first batch that finally failed by a worker's death; one for memory comes before the others. */
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

/** Failed batches behind `after`, in order. */
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

/** Rows of an index that are counted in one statement: a few milliseconds. */
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
        // The last one is still being counted.
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

/** By their errors, behind `last`; an index has all that is asked for, and the place to begin. A failed batch always has a group. */
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

/** The letter about a batch was refused for good. */
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

/** The rows of these batches go: they are as if they had never run. */
export async function forgetBatches(
  tx: Statements,
  jobId: string,
  batches: readonly number[],
): Promise<void> {
  for (const batch of batches)
    await tx.run("DELETE FROM batches WHERE job_id = ? AND batch_index = ?", [jobId, batch]);
}
