/** The rows of single batches: only those that failed or lost their worker have one. */

import { first, type Statements } from "../database/database.ts";
import type { WorkerFault } from "../protocol/messages.ts";

export interface FailedBatch {
  batch_index: number;
  /** Whether the worker died in it, rather than predict() raising or running out of time. */
  by_death: boolean;
  fault: WorkerFault;
}

export async function saveFailedBatch(
  tx: Statements,
  jobId: string,
  round: number,
  failed: FailedBatch,
): Promise<void> {
  await tx.run(
    `INSERT INTO batches (job_id, batch_index, round, attempts, failed, by_death, error_json) VALUES (?, ?, ?, 1, 1, ?, ?)
     ON CONFLICT (job_id, batch_index) DO UPDATE SET round = excluded.round, attempts = batches.attempts + 1, failed = 1,
       by_death = excluded.by_death, error_json = excluded.error_json`,
    [jobId, failed.batch_index, round, failed.by_death ? 1 : 0, JSON.stringify(failed.fault)],
  );
}

/** One more loss of a worker that was not the batch's doing; resolves to the number of them. */
export async function addInterruption(
  db: Statements,
  jobId: string,
  round: number,
  batchIndex: number,
): Promise<number> {
  await db.run(
    `INSERT INTO batches (job_id, batch_index, round, interruptions) VALUES (?, ?, ?, 1)
     ON CONFLICT (job_id, batch_index) DO UPDATE SET interruptions = batches.interruptions + 1`,
    [jobId, batchIndex, round],
  );
  const row = await first<{ interruptions: number }>(
    db,
    "SELECT interruptions FROM batches WHERE job_id = ? AND batch_index = ?",
    [jobId, batchIndex],
  );
  return row?.interruptions ?? 0;
}

/** Batches that have been interrupted too often: each runs alone, and is charged. */
export async function suspects(db: Statements, jobId: string, interruptionsMax: number): Promise<number[]> {
  const rows = await db.all<{ batch_index: number }>(
    "SELECT batch_index FROM batches WHERE job_id = ? AND failed = 0 AND interruptions >= ? ORDER BY batch_index",
    [jobId, interruptionsMax],
  );
  return rows.map((row) => row.batch_index);
}

export async function countFailedByDeath(db: Statements, jobId: string): Promise<number> {
  const row = await first<{ n: number }>(
    db,
    "SELECT count(*) AS n FROM batches WHERE job_id = ? AND failed = 1 AND by_death = 1",
    [jobId],
  );
  return row?.n ?? 0;
}

export interface FailedBatchRow {
  batch_index: number;
  attempts: number;
  error_json: string;
}

/** Failed batches behind `after`, in order. */
export function failedBatches(
  db: Statements,
  jobId: string,
  after: number,
  limit: number,
): Promise<FailedBatchRow[]> {
  return db.all<FailedBatchRow>(
    "SELECT batch_index, attempts, error_json FROM batches WHERE job_id = ? AND failed = 1 AND batch_index > ? ORDER BY batch_index LIMIT ?",
    [jobId, after, limit],
  );
}
