/** Counts and means of the durations that gateways count in buckets. Pure. */
import { bucketsSince, type Histogram } from "../contracts/reports.ts";

/** Requests that take so long are slow. */
export const SLOW_S = 1;

export function countOf({ buckets }: Histogram): number {
  return buckets.reduce((sum, count) => sum + count, 0);
}

/** Seconds; 0 if there was none. */
export function meanOf(histogram: Histogram): number {
  const count = countOf(histogram);
  return count === 0 ? 0 : Math.max(0, histogram.sum_s) / count;
}

/** What was added since `before`. */
export function since(now: Histogram, before: Histogram): Histogram {
  return { buckets: bucketsSince(now, before), sum_s: Math.max(0, now.sum_s - before.sum_s) };
}
