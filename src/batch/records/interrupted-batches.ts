/**
 * The rows of batches that are in hand, or were when a controller died: how often each was interrupted, and what
 * follows from that (docs/decisions/0005-workers-after-a-crash.md). The conditions repeat those of indexes
 * (database/schema/later-steps.ts): rows may be large.
 */
import type { Statements } from "../../database/database.ts";

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
       SELECT job_id, CAST(? AS BIGINT), round, 1 FROM jobs WHERE job_id = ? AND closing IS NULL
       ON CONFLICT (job_id, batch_index) DO UPDATE SET interruptions = batches.interruptions + 1
       WHERE batches.in_hand = 0`,
      [batch_index, job_id],
    );
  await tx.run(
    "UPDATE batches SET interruptions = interruptions + 1, in_hand = 0 WHERE in_hand > 0 AND in_hand = 1",
  );
  await tx.run(
    `UPDATE batches SET in_hand = 0
     WHERE in_hand > 0 AND job_id IN (SELECT job_id FROM jobs WHERE closing IS NOT NULL)`,
  );
}

/** Batches that were alone in hand when the server died: each is charged for that attempt. */
export async function condemned(db: Statements, jobId: string): Promise<Set<number>> {
  const rows = await db.all<{ batch_index: number }>(
    "SELECT batch_index FROM batches WHERE job_id = ? AND failed = 0 AND in_hand > 0 AND in_hand = ?",
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
    "SELECT batch_index FROM batches WHERE job_id = ? AND failed = 0 AND interruptions > 0 AND interruptions >= ?",
    [jobId, interruptionsMax],
  );
  return new Set(rows.map((row) => row.batch_index));
}
