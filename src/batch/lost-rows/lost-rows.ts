/**
 * The rows of a job that were on a disk that is gone, before they were in a part of its output: with `--state` a data
 * directory may be lost. Their batches count as never run, and run again. So the output has each prediction once, and
 * the counts are exact. Each commit is complete by itself: after a kill, the next run continues.
 */
import type { Database, Statements } from "../../database/database.ts";
import {
  clearSettled,
  findSegment,
  isSettled,
  type SegmentProgress,
  segmentsWithSettled,
  writeSettled,
} from "../../database/segment-rows.ts";
import { forgetBatches } from "../records/batch-rows.ts";
import { FormerOwner } from "../records/owned-job.ts";

const SEGMENTS_A_COMMIT = 64;

export interface LostRowsOptions {
  db: Database;
  jobId: string;
  epoch: number;
}

/** How many batches count as never run. */
export interface Uncounted {
  succeeded: number;
  failedBatches: number;
}

/** `first`: the first batch that is in no part. Resolves to what the job's row has counted less. */
export async function uncountLostRows(options: LostRowsOptions, first: number): Promise<Uncounted> {
  const { db, jobId } = options;
  const sum = { succeeded: 0, failedBatches: 0 };
  const begin = await findSegment(db, jobId, first);
  for (let from = begin?.first_batch ?? first; ; ) {
    const segments = await segmentsWithSettled(db, jobId, from, SEGMENTS_A_COMMIT);
    if (segments.length === 0) return sum;
    const less = await db.transaction((tx) => uncountSome(tx, options, segments, first));
    sum.succeeded += less.succeeded;
    sum.failedBatches += less.failedBatches;
    from = segments.at(-1)!.first_batch + 1;
  }
}

async function uncountSome(
  tx: Statements,
  { jobId, epoch }: LostRowsOptions,
  segments: readonly SegmentProgress[],
  first: number,
): Promise<Uncounted> {
  const less = { succeeded: 0, failedBatches: 0 };
  for (const segment of segments) {
    const { failed, partial } = await outcomes(tx, jobId, segment);
    const cleared: number[] = [];
    for (let at = 0; at < segment.batch_count; at++) {
      const batch = segment.first_batch + at;
      // A batch that has failed as a whole has no rows.
      const hasRows = !failed.has(batch) || partial.has(batch);
      if (batch >= first && isSettled(segment, batch) && hasRows) cleared.push(batch);
    }
    if (cleared.length === 0) continue;
    for (const batch of cleared) clearSettled(segment, batch);
    await writeSettled(tx, jobId, segment);
    const again = cleared.filter((batch) => failed.has(batch));
    await forgetBatches(tx, jobId, again);
    less.succeeded += cleared.length - again.length;
    less.failedBatches += again.length;
  }
  if (!(await countLess(tx, jobId, epoch, less))) throw new FormerOwner();
  return less;
}

/** The batches of a segment that have finally failed, and those of them that have rows of some items. */
async function outcomes(tx: Statements, jobId: string, { first_batch, batch_count }: SegmentProgress) {
  const range = [jobId, first_batch, first_batch + batch_count];
  const failed = await tx.all<{ batch_index: number }>(
    "SELECT batch_index FROM batches WHERE job_id = ? AND batch_index >= ? AND batch_index < ? AND failed = 1",
    range,
  );
  const partial = await tx.all<{ batch_index: number }>(
    "SELECT DISTINCT batch_index FROM batch_parts WHERE job_id = ? AND batch_index >= ? AND batch_index < ? AND file > 0",
    range,
  );
  const numbers = (rows: { batch_index: number }[]) => new Set(rows.map(({ batch_index }) => batch_index));
  return { failed: numbers(failed), partial: numbers(partial) };
}

/** The time that they took is counted less by their share of it. */
async function countLess(
  tx: Statements,
  jobId: string,
  epoch: number,
  { succeeded, failedBatches }: Uncounted,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE jobs SET success_us = CASE WHEN succeeded > ? THEN success_us - success_us / succeeded * ? ELSE 0 END,
       succeeded = succeeded - ?, failed_batches = failed_batches - ? WHERE job_id = ? AND epoch = ?`,
    [succeeded, succeeded, succeeded, failedBatches, jobId, epoch],
  );
  return changed === 1;
}
