/**
 * What a gateway tells the controller once a second: what is under way, and its totals since it started. Totals, not
 * increments: a report that is lost or comes twice neither loses nor doubles anything.
 */
import { z } from "zod";

/** Upper bounds of the buckets of durations, in seconds; one more bucket is for what is above them all. */
export const DURATION_BOUNDS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

const counts = z.record(z.string(), z.int());

const histogramSchema = z.object({
  /** How many fell into each bucket alone. */
  buckets: z.array(z.int()).length(DURATION_BOUNDS_S.length + 1),
  sum_s: z.number(),
});
export type Histogram = z.infer<typeof histogramSchema>;

const tallySchema = z.object({
  /** Answers by `2xx`, `4xx`, `5xx`; `left` where the client went before the answer. */
  answers: counts,
  /** From the request's head to the answer's end. */
  duration: histogramSchema,
  /** Until a replica was given the request. */
  wait: histogramSchema,
  /** Answers of the gateway's own, by error code. */
  rejected: counts,
  /** `monitoring`: predictions by class. */
  classes: counts,
  /** `monitoring`: numbers. */
  values: z.object({ count: z.int(), sum: z.number(), least: z.number(), most: z.number() }).nullable(),
});
export type Tally = z.infer<typeof tallySchema>;

export const reportSchema = z.object({
  /** The gateway's own id, new with each start. */
  gateway: z.string(),
  /** Requests by API: all that are under way, and of those the ones that wait for a replica. */
  in_flight: counts,
  waiting: counts,
  tallies: z.record(z.string(), tallySchema),
});
export type Report = z.infer<typeof reportSchema>;

export function emptyTally(): Tally {
  const histogram = () => ({ buckets: new Array<number>(DURATION_BOUNDS_S.length + 1).fill(0), sum_s: 0 });
  return { answers: {}, duration: histogram(), wait: histogram(), rejected: {}, classes: {}, values: null };
}
