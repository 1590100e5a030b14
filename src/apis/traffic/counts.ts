/** The counts of an API's requests in a gateway's totals, and percentiles of their durations. Pure. */
import { countRejected, percentileOf, type Tally } from "../../contracts/reports.ts";

export interface Counts {
  requests: number;
  /** Responses with a 5xx status. */
  errors: number;
  /** By the bounds of DURATION_BOUNDS_S, and one more for longer ones. */
  buckets: readonly number[];
}

/** What a gateway reported, compared with its report before. */
export interface Totals extends Counts {
  /** Errors that are refusals of the gateway itself. They are counted when they begin, and `errors` when they end. */
  refused: number;
  /** Refusals that had begun but not ended. */
  open: number;
  /** Errors since the report before that were no refusals. */
  failed: number;
}

const NONE = { errors: 0, refused: 0, open: 0 };

/** `before`: of the same gateway. */
export function totalsIn(
  { answers, duration, rejected }: Pick<Tally, "answers" | "duration" | "rejected">,
  before: Totals | undefined,
): Totals {
  const requests = Object.values(answers).reduce((sum, count) => sum + count, 0);
  const [errors, refused] = [answers["5xx"] ?? 0, countRejected(rejected, 500)];
  const former = before === undefined || isReset(before, requests) ? NONE : before;
  const begun = refused - former.refused;
  const open = former.open + begun - (errors - former.errors);
  // A refusal ends within a second. If it does not, its client has left, and it is never counted as an error.
  return {
    ...{ requests, errors, buckets: duration.buckets, refused },
    ...{ open: Math.max(0, Math.min(open, begun)), failed: Math.max(0, -open) },
  };
}

/** Totals only grow, unless the API was deleted and deployed again. */
export function isReset(former: Counts | undefined, requests: number): boolean {
  return former !== undefined && former.requests > requests;
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
