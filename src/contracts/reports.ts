/**
 * What a gateway reports to the controller once a second: its requests in flight, and its totals since it started. It
 * sends totals and not increments, so that a lost or repeated report changes no count.
 */
import * as z from "zod";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { CLASS_LENGTH_MAX, CLASSES_COUNTED_MAX } from "./limits/predictions.ts";

/** The label of all classes that are not counted separately. */
const OTHER_CLASSES = "(others)";

/** Upper bounds of the duration buckets, in seconds. One more bucket counts all longer durations. */
export const DURATION_BOUNDS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/**
 * Counts whose labels Quern defines. Names that users choose (APIs, classes) are in pairs, so that no object has them
 * as keys.
 */
const counts = z.record(z.string(), z.int());

const histogramSchema = z.object({
  /** How many durations fell into each bucket alone. */
  buckets: z.array(z.int()).length(DURATION_BOUNDS_S.length + 1),
  sum_s: z.number(),
});
export type Histogram = z.infer<typeof histogramSchema>;

const tallySchema = z.object({
  /** Responses by `2xx`, `4xx`, `5xx`; `left` if the client disconnected before the response. */
  answers: counts,
  /** From the request's head to the end of the response. */
  duration: histogramSchema,
  /** The time until a replica got the request. */
  wait: histogramSchema,
  /** Responses that the gateway itself made, by error code. */
  rejected: counts,
  /** `monitoring`: predictions by class. */
  classes: z.array(z.tuple([z.string(), z.int()])),
  /** `monitoring`: numbers. */
  values: z.object({ count: z.int(), sum: z.number(), least: z.number(), most: z.number() }).nullable(),
});
export type Tally = z.infer<typeof tallySchema>;

const apiReportSchema = z.object({
  name: z.string(),
  /** All requests in flight, and those of them that wait for a replica. */
  in_flight: z.int(),
  waiting: z.int(),
  tally: tallySchema,
});
export type ApiReport = z.infer<typeof apiReportSchema>;

/** The delay of a process's event loop, in milliseconds: how long its clients waited for it. */
export const loopDelaySchema = z.object({
  /** Over the last one or two minutes in which it had work. */
  p99_ms: z.number(),
  max_ms: z.number(),
  /** Since its start. */
  longest_ms: z.number(),
});
export type LoopDelay = z.infer<typeof loopDelaySchema>;

/** Keys that were used, each with the minute in milliseconds. A gateway sends a key once a minute at most. */
export const usedKeysSchema = z.object({ keys: z.array(z.tuple([z.string(), z.int()])) });
export type UsedKeyMinutes = z.infer<typeof usedKeysSchema>["keys"];

/** The APIs are read one by one, so that one unreadable API does not lose the numbers of the others. */
const reportSchema = z.object({
  /** The gateway's id, which is new with each start. */
  gateway: z.string(),
  loop: loopDelaySchema.optional(),
  apis: z.array(z.unknown()),
});

export interface Report {
  gateway: string;
  loop?: LoopDelay | undefined;
  apis: ApiReport[];
}

/** Throws if it is no report at all. `refused` has the reason for each API that could not be read. */
export function readReport(value: unknown): { report: Report; refused: string[] } {
  const { gateway, loop, apis } = reportSchema.parse(value);
  const refused: string[] = [];
  const read = apis.flatMap((item) => {
    const one = apiReportSchema.safeParse(item);
    if (one.success) return [one.data];
    const [issue] = one.error.issues;
    refused.push(`${(item as { name?: unknown } | null)?.name}: ${issue!.path.join(".")}: ${issue!.message}`);
    return [];
  });
  return { report: { gateway, loop, apis: read }, refused };
}

export function emptyTally(): Tally {
  const histogram = () => ({ buckets: new Array<number>(DURATION_BOUNDS_S.length + 1).fill(0), sum_s: 0 });
  return { answers: {}, duration: histogram(), wait: histogram(), rejected: {}, classes: [], values: null };
}

/** How many were refused with a status of this hundred. */
export function countRejected(rejected: Readonly<Record<string, number>>, hundred: number): number {
  const statusOf = (code: string) => ERRORS[code as ErrorCode]?.[0] ?? 0;
  return Object.entries(rejected)
    .filter(([code]) => statusOf(code) >= hundred && statusOf(code) < hundred + 100)
    .reduce((sum, [, number]) => sum + number, 0);
}

/**
 * Counts a class, if its name is short and the table has space: users choose the names, and each takes a row and a
 * label.
 */
export function addClass(classes: Map<string, number>, name: string, count: number): void {
  const known = classes.get(name);
  if (known !== undefined) classes.set(name, known + count);
  else if (classes.size < CLASSES_COUNTED_MAX && name.length <= CLASS_LENGTH_MAX) classes.set(name, count);
  else classes.set(OTHER_CLASSES, (classes.get(OTHER_CLASSES) ?? 0) + count);
}

/** Keeps a sum finite: JSON has no infinity. */
export function finite(sum: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, sum));
}

/**
 * The duration in seconds that a share (0 to 1) of those in `buckets` does not exceed, interpolated inside its bucket;
 * null if there is none. Beyond the last bound it is that bound.
 */
export function percentileOf(buckets: readonly number[], share: number): number | null {
  const rank = share * buckets.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [at, count] of buckets.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = at === 0 ? 0 : DURATION_BOUNDS_S[at - 1]!;
      const to = DURATION_BOUNDS_S[at] ?? from;
      return from + (to - from) * Math.max(0, (rank - below) / count);
    }
    below += count;
  }
  return null;
}

/** How many durations came into each bucket since `before`. */
export function bucketsSince(now: Histogram, before: Histogram): number[] {
  return now.buckets.map((count, at) => Math.max(0, count - (before.buckets[at] ?? 0)));
}
