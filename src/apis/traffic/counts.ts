/** The counts of an API's requests in a gateway's totals, and percentiles of their durations. Pure. */
import { DURATION_BOUNDS_S, type Tally } from "../../contracts/reports.ts";

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

/** The duration in seconds below which this share of the requests stays, from 0 to 1; null if there is none. */
export function percentile(buckets: readonly number[], share: number): number | null {
  const all = buckets.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let below = 0;
  for (const [i, count] of buckets.entries()) {
    if (count > 0 && below + count >= share * all) {
      const from = i === 0 ? 0 : DURATION_BOUNDS_S[i - 1]!;
      // Of those beyond the last bound, only that is known.
      const to = DURATION_BOUNDS_S[i] ?? from;
      return threeDigits(from + ((to - from) * (share * all - below)) / count);
    }
    below += count;
  }
  return DURATION_BOUNDS_S.at(-1)!;
}

/** More digits would only make the same number look changed. */
export function threeDigits(value: number): number {
  return Number(value.toPrecision(3));
}
