/**
 * What a gateway tells the controller once a second: what is under way, and its totals since it started. Totals, not
 * increments: a report that is lost or comes twice neither loses nor doubles anything.
 */
import * as z from "zod";
import { CLASS_LENGTH_MAX, CLASSES_COUNTED_MAX } from "./limits.ts";

/** Classes that are not counted apart. */
const OTHER_CLASSES = "(others)";

/** Upper bounds of the buckets of durations, in seconds; one more bucket is for what is above them all. */
export const DURATION_BOUNDS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/** By words of our own. What users name (APIs, classes) stands in pairs: no object has their names as keys. */
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
  classes: z.array(z.tuple([z.string(), z.int()])),
  /** `monitoring`: numbers. */
  values: z.object({ count: z.int(), sum: z.number(), least: z.number(), most: z.number() }).nullable(),
});
export type Tally = z.infer<typeof tallySchema>;

const apiReportSchema = z.object({
  name: z.string(),
  /** Requests: all that are under way, and of those the ones that wait for a replica. */
  in_flight: z.int(),
  waiting: z.int(),
  tally: tallySchema,
});
export type ApiReport = z.infer<typeof apiReportSchema>;

/** How late a process came to what was due, in milliseconds: its clients waited so long. */
export const loopDelaySchema = z.object({
  /** Of the last one or two minutes in which it had work. */
  p99_ms: z.number(),
  max_ms: z.number(),
  /** Since its start. */
  longest_ms: z.number(),
});
export type LoopDelay = z.infer<typeof loopDelaySchema>;

/** The APIs are read one by one: what cannot be read of one costs no other its numbers. */
const reportSchema = z.object({
  /** The gateway's own id, new with each start. */
  gateway: z.string(),
  loop: loopDelaySchema.optional(),
  apis: z.array(z.unknown()),
});

export interface Report {
  gateway: string;
  loop?: LoopDelay | undefined;
  apis: ApiReport[];
}

/** Throws if it is no report at all. `refused`: why, for each API that could not be read. */
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

/** Counts a class, where there is room for it: their names come from users, and each takes a row and a label. */
export function addClass(classes: Map<string, number>, name: string, count: number): void {
  const known = classes.get(name);
  if (known !== undefined) classes.set(name, known + count);
  else if (classes.size < CLASSES_COUNTED_MAX && name.length <= CLASS_LENGTH_MAX) classes.set(name, count);
  else classes.set(OTHER_CLASSES, (classes.get(OTHER_CLASSES) ?? 0) + count);
}

/** A sum of numbers is a number: JSON has no infinity. */
export function finite(sum: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, sum));
}
