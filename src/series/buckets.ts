/**
 * The columns of histograms in series_requests, and percentiles from them. A percentile is interpolated inside its bucket
 * of DURATION_BOUNDS_S, so it is off by less than the width of that bucket.
 */
import { DURATION_BOUNDS_S, type Histogram } from "../contracts/reports.ts";

const COUNT = DURATION_BOUNDS_S.length + 1;
const columns = (letter: string) => Array.from({ length: COUNT }, (_, at) => `${letter}${at}`);
export const DURATION_COLUMNS = columns("d");
export const WAIT_COLUMNS = columns("w");

/** How many durations came into each bucket since `before`. */
export function growthOf(now: Histogram, before: Histogram): number[] {
  return now.buckets.map((count, at) => Math.max(0, count - (before.buckets[at] ?? 0)));
}

/**
 * The duration in seconds that a share (0 to 1) of those in `buckets` does not exceed; null if there is none. Beyond the
 * last bound it is that bound.
 */
export function percentile(buckets: readonly number[], share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let below = 0;
  for (const [at, count] of buckets.entries()) {
    if (count === 0 || below + count < rank) {
      below += count;
      continue;
    }
    const from = at === 0 ? 0 : DURATION_BOUNDS_S[at - 1]!;
    const to = DURATION_BOUNDS_S[at] ?? from;
    return from + (to - from) * Math.max(0, (rank - below) / count);
  }
  return DURATION_BOUNDS_S.at(-1)!;
}
