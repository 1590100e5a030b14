/**
 * What a job's owner writes to its row while the job runs. Each write carries the owner's epoch: that of a former owner
 * changes nothing and returns that (docs/decisions/0004-commit-order.md).
 */
import { type Database, first, type Statements } from "../../database/database.ts";
import { JOB_COLUMNS, type JobRow } from "./job-rows.ts";

/** Another controller has the job now. This one leaves it as it is. */
export class FormerOwner extends Error {
  constructor() {
    super("another controller has this job now");
  }
}

/** Takes a job over; every later write of this run carries `epoch`. Undefined if it ends, has ended or is paused. */
export async function claimJob(db: Database, jobId: string, epoch: number): Promise<JobRow | undefined> {
  await db.run("UPDATE jobs SET epoch = ? WHERE job_id = ? AND epoch < ? AND end_time IS NULL", [
    epoch,
    jobId,
    epoch,
  ]);
  return first<JobRow>(
    db,
    `SELECT ${JOB_COLUMNS} FROM jobs
     WHERE job_id = ? AND epoch = ? AND paused IS NULL AND closing IS NULL AND end_time IS NULL`,
    [jobId, epoch],
  );
}

export async function setStartTime(
  db: Statements,
  jobId: string,
  epoch: number,
  startTime: string,
): Promise<void> {
  await db.run("UPDATE jobs SET start_time = COALESCE(start_time, ?) WHERE job_id = ? AND epoch = ?", [
    startTime,
    jobId,
    epoch,
  ]);
}

/** The first worker of the round is ready. */
export async function setNotQueued(db: Statements, job: JobRow): Promise<void> {
  job.queued_time = null;
  await db.run("UPDATE jobs SET queued_time = NULL WHERE job_id = ? AND epoch = ?", [job.job_id, job.epoch]);
}

/** The end of enqueuing: predictions may begin. False if the job was closed before. */
export async function setRunning(
  db: Statements,
  jobId: string,
  epoch: number,
  totalBatches: number,
): Promise<boolean> {
  const changed = await db.run(
    "UPDATE jobs SET status = 'status_running', total_batch_count = ? WHERE job_id = ? AND epoch = ? AND status = 'status_enqueuing' AND closing IS NULL",
    [totalBatches, jobId, epoch],
  );
  return changed === 1;
}

export async function saveEnqueued(
  tx: Statements,
  jobId: string,
  epoch: number,
  batches: number,
  cursor: unknown,
): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE jobs SET enqueued_batches = ?, enqueue_cursor_json = ?, enqueuing_deaths = 0 WHERE job_id = ? AND epoch = ?",
    [batches, JSON.stringify(cursor), jobId, epoch],
  );
  return changed === 1;
}

/** How many batches are committed, and where they end in the input. */
export async function committedEnqueuing(
  db: Statements,
  jobId: string,
): Promise<{ batches: number; cursor_json: string | null }> {
  const sql =
    "SELECT enqueued_batches AS batches, enqueue_cursor_json AS cursor_json FROM jobs WHERE job_id = ?";
  return (await first<{ batches: number; cursor_json: string | null }>(db, sql, [jobId]))!;
}

export interface SettledDelta {
  succeeded: number;
  failedAttempts: number;
  failedBatches: number;
  successUs: number;
}

export async function addSettled(
  tx: Statements,
  jobId: string,
  epoch: number,
  delta: SettledDelta,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE jobs SET succeeded = succeeded + ?, failed_attempts = failed_attempts + ?, failed_batches = failed_batches + ?,
       success_us = success_us + ? WHERE job_id = ? AND epoch = ?`,
    [delta.succeeded, delta.failedAttempts, delta.failedBatches, delta.successUs, jobId, epoch],
  );
  return changed === 1;
}
