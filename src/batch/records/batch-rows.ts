/**
 * The rows of single batches: records failed attempts. Only batches that failed, were interrupted or are recorded as in
 * hand have a row (interrupted-batches.ts, failed-batches.ts).
 */

import { CHARGED_ROWS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import type { Statements } from "../../database/database.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";

export interface FailedAttempt {
  batch_index: number;
  /** `death` and `oom`: the worker died, `oom` for lack of memory. `fault`: an exception or a timeout. */
  cause: "fault" | "death" | "oom";
  fault: WorkerFault;
  /** Its error group, if `fault` may have been cut since. */
  group?: string;
  /** The batch has no attempt left. */
  isFinal: boolean;
}

/** Nobody reads the error of an attempt that is not the last: only its number is kept. */
export async function saveFailedAttempt(
  tx: Statements,
  jobId: string,
  round: number,
  { batch_index, cause, fault, group = errorGroup(fault), isFinal }: FailedAttempt,
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
      isFinal ? JSON.stringify(fault) : null,
      isFinal ? group : null,
    ],
  );
}

/** A row without its error. */
const ROW_BYTES = 300;

/** About how many bytes a failure takes in the database. */
export function rowBytes({ message, traceback }: WorkerFault): number {
  return ROW_BYTES + message.length + traceback.length;
}

const GROUP_LENGTH_MAX = 200;

/** Errors that differ only in numbers form one group: they are the same mistake on different data. */
export function errorGroup({ type, message }: { type: string; message: string }): string {
  const [line = ""] = message.split("\n", 1);
  return describeFault({ type, message: line.replace(/\d+(\.\d+)?/g, "#") }).slice(0, GROUP_LENGTH_MAX);
}

/** Attempts already charged to unsettled batches, for those that have any. In pieces: a job may have millions. */
export async function chargedAttempts(db: Statements, jobId: string): Promise<Map<number, number>> {
  const charged = new Map<number, number>();
  for (let last = -1; ; ) {
    const rows = await db.all<{ batch_index: number; attempts: number }>(
      `SELECT batch_index, attempts FROM batches
       WHERE job_id = ? AND failed = 0 AND attempts > 0 AND batch_index > ? ORDER BY batch_index LIMIT ?`,
      [jobId, last, CHARGED_ROWS_AT_ONCE],
    );
    for (const { batch_index, attempts } of rows) charged.set(batch_index, attempts);
    if (rows.length < CHARGED_ROWS_AT_ONCE) return charged;
    last = rows.at(-1)!.batch_index;
  }
}

/** Records why SQS will not get the message about a batch. */
export async function setLetterError(
  tx: Statements,
  letter: { job_id: string; batch_index: number; round: number; first_item: number | null },
  reason: string,
): Promise<void> {
  if (letter.first_item !== null) {
    const sql =
      "UPDATE failed_items SET letter_error = ? WHERE job_id = ? AND batch_index = ? AND first_item = ? AND round = ?";
    await tx.run(sql, [reason, letter.job_id, letter.batch_index, letter.first_item, letter.round]);
    return;
  }
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
