/**
 * Begins new rounds of an ended job (docs/contract/jobs.md#round-rules). `redrive` puts failed batches back with fresh
 * attempts; `resume` continues with the batches that were never settled. Each is one commit. The run that follows works
 * as after a restart of the server.
 */
import { timestamp } from "../../base/clock.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { describeFault } from "../../contracts/faults.ts";
import type { Database, Statements } from "../../database/database.ts";
import { clearSettled, findSegment, writeSettled } from "../../database/segment-rows.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { failedBatches, forgetBatches } from "../records/batch-rows.ts";
import { beginRound, type JobRow, jobById } from "../records/job-rows.ts";
import { isTerminal } from "../records/job-status.ts";

const BATCHES_A_PAGE = 500;

/** `error`: only batches whose error contains this text. Throws `wrong_state`. */
export async function redrive(db: Database, jobId: string, error: string | undefined): Promise<number> {
  return db.transaction(async (tx) => {
    const job = await endedJob(tx, jobId);
    if (!isSettled(job))
      throw wrongState(
        job,
        `it ended before all its batches were settled; resume it first (\`quern job resume ${job.api_name} ${jobId}\`)`,
      );
    const batches = await matchingFailures(tx, jobId, error);
    if (batches.length === 0)
      throw wrongState(
        job,
        error === undefined
          ? "it has no failed batch"
          : `none of its failed batches has "${error}" in its error`,
      );
    await unsettle(tx, jobId, batches);
    await forgetBatches(tx, jobId, batches);
    await beginRound(tx, jobId, {
      status: "status_running",
      redriven: batches.length,
      startedTime: timestamp(),
    });
    return batches.length;
  });
}

export async function resume(db: Database, jobId: string): Promise<void> {
  await db.transaction(async (tx) => {
    const job = await endedJob(tx, jobId);
    if (isSettled(job))
      throw wrongState(
        job,
        `all its batches are settled${job.failed_batches > 0 ? `; \`quern job redrive ${job.api_name} ${jobId}\` runs the failed ones again` : ""}`,
      );
    const status = job.total_batch_count === null ? "status_enqueuing" : "status_running";
    await beginRound(tx, jobId, { status, redriven: 0, startedTime: timestamp() });
  });
}

async function endedJob(tx: Statements, jobId: string): Promise<JobRow> {
  const job = (await jobById(tx, jobId))!;
  if (!isTerminal(job.status)) throw wrongState(job, "it has not ended");
  if (job.pruned_time !== null)
    throw wrongState(
      job,
      `its batches were removed at ${job.pruned_time}, after the retention of the server`,
    );
  return job;
}

function isSettled({ total_batch_count, succeeded, failed_batches }: JobRow): boolean {
  return total_batch_count !== null && succeeded + failed_batches >= total_batch_count;
}

async function matchingFailures(tx: Statements, jobId: string, error: string | undefined): Promise<number[]> {
  const found: number[] = [];
  for (let after = -1; ; ) {
    const rows = await failedBatches(tx, jobId, after, BATCHES_A_PAGE);
    for (const { batch_index, error_json } of rows) {
      const isMatch =
        error === undefined || describeFault(JSON.parse(error_json) as WorkerFault).includes(error);
      if (isMatch) found.push(batch_index);
    }
    if (rows.length < BATCHES_A_PAGE) return found;
    after = rows[rows.length - 1]!.batch_index;
  }
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

function wrongState(job: JobRow, why: string): ServiceError {
  return new ServiceError("wrong_state", `job ${job.job_id} (${job.status}) cannot have a new round: ${why}`);
}
