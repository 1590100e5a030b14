/** Percentiles from histograms. */
import { describe, expect, it } from "vitest";
import { bucketsSince, DURATION_BOUNDS_S, percentileOf } from "../../src/contracts/reports.ts";

/** A histogram of these durations, in seconds. */
function bucketsOf(durations: readonly number[]): number[] {
  const buckets = [...DURATION_BOUNDS_S, Number.POSITIVE_INFINITY].map(() => 0);
  for (const seconds of durations) {
    const at = DURATION_BOUNDS_S.findIndex((bound) => seconds <= bound);
    buckets[at === -1 ? DURATION_BOUNDS_S.length : at]!++;
  }
  return buckets;
}

describe("a percentile", () => {
  it("is null without a request", () => {
    expect(percentileOf(bucketsOf([]), 0.5)).toBeNull();
  });

  it("is off by less than the width of its bucket", () => {
    const durations = Array.from({ length: 1_000 }, (_, i) => 0.0004 * 1.012 ** i);
    for (const share of [0, 0.01, 0.5, 0.95, 0.99, 1]) {
      const exact = durations[Math.max(0, Math.ceil(share * durations.length) - 1)]!;
      const at = DURATION_BOUNDS_S.findIndex((bound) => exact <= bound);
      const width = DURATION_BOUNDS_S[at]! - (DURATION_BOUNDS_S[at - 1] ?? 0);
      expect(Math.abs(percentileOf(bucketsOf(durations), share)! - exact), `${share}`).toBeLessThanOrEqual(
        width,
      );
    }
  });

  it("lies between those of less and more, and never beyond the last bound", () => {
    const buckets = bucketsOf([0.003, 0.03, 0.3, 3, 100, 200]);
    const all = [0.1, 0.3, 0.5, 0.7, 0.9, 1].map((share) => percentileOf(buckets, share)!);
    expect(all).toEqual(all.toSorted((a, b) => a - b));
    expect(all.at(-1)).toBe(60);
    expect(percentileOf(bucketsOf([0.2, 0.2]), 0.5)).toBeCloseTo(0.175, 9);
  });

  it("is of what came since the report before, which never counts negatively", () => {
    const histogram = (durations: number[]) => ({ buckets: bucketsOf(durations), sum_s: 0 });
    expect(bucketsSince(histogram([0.1, 0.1, 9]), histogram([0.1, 0.003]))).toEqual(bucketsOf([0.1, 9]));
  });
});
