/** Decides which batches of a segment can be read: pure. */
import { isSettled, type Segment } from "../../database/segment-rows.ts";

/**
 * The next settled batches from `first` on, without a gap. Unsettled ones are skipped if they will never come.
 * Undefined if there is nothing to read.
 */
export function settledRange(
  segment: Segment,
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
