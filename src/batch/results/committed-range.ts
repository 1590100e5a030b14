/** Decides which batches can be read, and when there are more: pure. */
import { isSettled, type SegmentProgress } from "../../database/segment-rows.ts";
import type { JobRow } from "../records/job-rows.ts";

/** What a job's row says about its rows: the commit that settles a batch also counts it here. */
type Counts = Pick<JobRow, "status" | "round" | "succeeded" | "failed_batches">;

/**
 * Whether there may be more rows to read than at the time of `before`. A part that was written since then adds none: it
 * has rows of batches that were settled before. A round counts from lower numbers again.
 */
export function mayHaveMore(job: Counts, before: Counts): boolean {
  return (
    job.succeeded !== before.succeeded ||
    job.failed_batches !== before.failed_batches ||
    job.round !== before.round ||
    job.status !== before.status
  );
}

/**
 * The next settled batches from `first` on, without a gap. Unsettled ones are skipped if they will never come.
 * Undefined if there is nothing to read.
 */
export function settledRange(
  segment: SegmentProgress,
  first: number,
  end: number,
  isRunning: boolean,
): { first: number; next: number } | undefined {
  const last = Math.min(end, segment.first_batch + segment.batch_count);
  let from = first;
  if (!isRunning) while (from < last && !isSettled(segment, from)) from++;
  let next = from;
  while (next < last && isSettled(segment, next)) next++;
  if (next > from) return { first: from, next };
  return !isRunning && last > first ? { first: last, next: last } : undefined;
}
