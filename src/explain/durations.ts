/** Percentiles and means of the durations that gateways count in buckets. Pure. */
import { DURATION_BOUNDS_S, type Histogram } from "../contracts/reports.ts";

export function countOf({ buckets }: Histogram): number {
  return buckets.reduce((sum, count) => sum + count, 0);
}

/** Seconds; 0 if there was none. */
export function meanOf(histogram: Histogram): number {
  const count = countOf(histogram);
  return count === 0 ? 0 : Math.max(0, histogram.sum_s) / count;
}

/** Seconds, interpolated inside the bucket; the last bucket has no upper bound, so its lower one is given. */
export function percentileOf(histogram: Histogram, share: number): number | undefined {
  const wanted = share * countOf(histogram);
  if (wanted === 0) return undefined;
  let before = 0;
  for (const [at, count] of histogram.buckets.entries()) {
    if (before + count >= wanted && count > 0) {
      const low = at === 0 ? 0 : DURATION_BOUNDS_S[at - 1]!;
      const high = DURATION_BOUNDS_S[at] ?? low;
      return low + ((high - low) * (wanted - before)) / count;
    }
    before += count;
  }
  return DURATION_BOUNDS_S.at(-1);
}

/** What was added since `before`. */
export function since(now: Histogram, before: Histogram): Histogram {
  const buckets = now.buckets.map((count, at) => Math.max(0, count - before.buckets[at]!));
  return { buckets, sum_s: Math.max(0, now.sum_s - before.sum_s) };
}
