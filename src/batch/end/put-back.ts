/** Puts failed batches of an ended job back, for a new round of it (new-round.ts). */
import { ServiceError } from "../../contracts/errors.ts";
import type { Database, Statements } from "../../database/database.ts";
import { clearSettled, findSegment, writeSettled } from "../../database/segment-rows.ts";
import { type ReopenedBatch, reopen } from "../isolate/reopen-batches.ts";
import { forgetBatches } from "../records/batch-rows.ts";
import { countFewerFailed } from "../records/job-moves.ts";
import { type JobRow, jobById } from "../records/job-rows.ts";
import { isTerminal } from "../records/job-status.ts";

/** Throws `wrong_state` if the job has not ended, or its batches are gone. */
export async function endedJob(tx: Statements, jobId: string): Promise<JobRow> {
  const job = await jobById(tx, jobId);
  if (job === undefined)
    throw new ServiceError("job_not_found", `the records of job ${jobId} were deleted meanwhile`);
  if (!isTerminal(job.status)) throw wrongState(job, "it has not ended");
  if (job.pruned_time !== null)
    throw wrongState(
      job,
      `its batches were removed at ${job.pruned_time}, after the retention of the server`,
    );
  return job;
}

/** Whether each of its batches succeeded or finally failed. */
export function isSettled({ total_batch_count, succeeded, failed_batches }: JobRow): boolean {
  return total_batch_count !== null && succeeded + failed_batches >= total_batch_count;
}

/**
 * In the last commit, the batches have never run, but for the good items of those that were split, and the job has so
 * many fewer failed ones.
 */
export async function putBack(
  db: Database,
  jobId: string,
  batches: readonly number[],
  split: readonly ReopenedBatch[],
): Promise<void> {
  for (const batch of split) await reopen(db, jobId, batch, (tx) => endedJob(tx, jobId));
  await db.transaction(async (tx) => {
    await endedJob(tx, jobId);
    await unsettle(tx, jobId, batches);
    await forgetBatches(tx, jobId, batches);
    await countFewerFailed(tx, jobId, batches.length);
  });
}

/** `batches` must be in order, so that each segment is written once. */
async function unsettle(tx: Statements, jobId: string, batches: readonly number[]): Promise<void> {
  for (let at = 0; at < batches.length; ) {
    const segment = (await findSegment(tx, jobId, batches[at]!))!;
    const end = segment.first_batch + segment.batch_count;
    for (; at < batches.length && batches[at]! < end; at++) clearSettled(segment, batches[at]!);
    await writeSettled(tx, jobId, segment);
  }
}

export function wrongState(job: JobRow, why: string): ServiceError {
  return new ServiceError("wrong_state", `job ${job.job_id} (${job.status}) cannot have a new round: ${why}`);
}
