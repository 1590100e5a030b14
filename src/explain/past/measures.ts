/**
 * What can differ from the hours before: latency, errors, refusals, the wait for a replica. For each, what is normal and
 * from where on a step differs. Pure.
 */
import { percentileOf } from "../../contracts/reports.ts";
import type { PastStepFacts } from "./past-facts.ts";

/** A value that is so many times the normal one differs. */
const TIMES = 2;
/**
 * The normal value varies: a value above so many times what this share of the steps have differs. What may have the
 * trouble itself among its steps is measured by a smaller share.
 */
const SPREAD = { clean: { times: 1.25, share: 0.9 }, mixed: { times: 1.5, share: 0.75 } };
/** With fewer steps there is nothing to compare with. */
export const BASE_STEPS_LEAST = 5;

export interface Measure {
  name: "latency" | "errors" | "rejected" | "wait";
  /** Null: there was nothing to measure. */
  of: (step: PastStepFacts) => number | null;
  /** A smaller rise disturbs nobody: seconds, or a share of the requests. */
  leastRise: number;
}

/** Requests that take so many seconds longer are slower. */
const SLOWER_S = 0.03;

/** In the order in which they are reported: refusals are often errors, and waits make requests slow. */
export const MEASURES: readonly Measure[] = [
  { name: "errors", of: (step) => share(step.errors, step), leastRise: 0.02 },
  { name: "latency", of: ({ durations }) => percentileOf(durations, 0.95), leastRise: SLOWER_S },
  { name: "wait", of: ({ waits }) => percentileOf(waits, 0.95), leastRise: SLOWER_S },
  { name: "rejected", of: (step) => share(rejectedIn(step), step), leastRise: 0.02 },
];

export interface Normal {
  median: number;
  /** A value above it differs. */
  bound: number;
}

/** What is normal in these steps; undefined if too few of them have a value. */
export function normalOf(
  { of, leastRise }: Measure,
  base: readonly PastStepFacts[],
  { times, share: part } = SPREAD.mixed,
): Normal | undefined {
  const values = known(base.map(of));
  if (values.length < BASE_STEPS_LEAST) return undefined;
  const median = quantile(values, 0.5);
  const spread = times * quantile(values, part);
  return { median, bound: Math.max(TIMES * median, spread, median + leastRise) };
}

/** Whether a latency is so much above another that it differs, if that one is the normal one. */
export function rises(before: number, now: number): boolean {
  return now > Math.max(TIMES * before, before + SLOWER_S);
}

/** The same of steps among which there is no trouble. */
export function normalBefore(measure: Measure, base: readonly PastStepFacts[]): Normal | undefined {
  return normalOf(measure, base, SPREAD.clean);
}

/** The middle one of the values that are known; null if none is. */
export function medianOf(values: readonly (number | null)[]): number | null {
  const sorted = known(values);
  return sorted.length === 0 ? null : quantile(sorted, 0.5);
}

export function rejectedIn({ rejected }: PastStepFacts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0);
}

/** The buckets of all steps together. */
export function summed(histograms: readonly (readonly number[])[]): number[] {
  const [first = []] = histograms;
  return first.map((_, at) => histograms.reduce((sum, buckets) => sum + (buckets[at] ?? 0), 0));
}

function share(count: number, { requests }: PastStepFacts): number | null {
  return requests === 0 ? null : Math.min(1, count / requests);
}

/** In order. */
function known(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null).sort((a, b) => a - b);
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}
