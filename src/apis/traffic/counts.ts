/** The counts of an API's requests in a gateway's totals, and percentiles of their durations. Pure. */
import { percentileOf, type Tally } from "../../contracts/reports.ts";

export interface Counts {
  requests: number;
  /** Responses with a 5xx status. */
  errors: number;
  /** By the bounds of DURATION_BOUNDS_S, and one more for longer ones. */
  buckets: readonly number[];
}

export function requestsIn({ answers, duration }: Pick<Tally, "answers" | "duration">): Counts {
  const requests = Object.values(answers).reduce((sum, count) => sum + count, 0);
  return { requests, errors: answers["5xx"] ?? 0, buckets: duration.buckets };
}

/** Totals only grow, unless the API was deleted and deployed again. */
export function isReset(former: Counts | undefined, now: Counts): boolean {
  return former !== undefined && former.requests > now.requests;
}

/** A percentile of durations in seconds; null if there is none. */
export function percentile(buckets: readonly number[], share: number): number | null {
  const seconds = percentileOf(buckets, share);
  return seconds === null ? null : threeDigits(seconds);
}

/** More digits would only make the same number look changed. */
export function threeDigits(value: number): number {
  return Number(value.toPrecision(3));
}
