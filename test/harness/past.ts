/** Minutes of an API with which nothing is wrong, for tests that change some of them. */
import { DURATION_BOUNDS_S } from "../../src/contracts/reports.ts";
import type { PastFacts, PastStepFacts } from "../../src/explain/past/past-facts.ts";

/** The first minute. */
export const START_S = Date.UTC(2026, 10, 28, 12) / 1000;

export type Change = Partial<Omit<PastStepFacts, "startS" | "durations" | "waits">> & {
  /** How long each request took and waited, in seconds. */
  took?: number;
  waited?: number;
};

export function step(at: number, change: Change = {}, stepS = 60): PastStepFacts {
  const { took = 0.02, waited = 0.0005, requests = 60, ...rest } = change;
  return {
    startS: START_S + at * stepS,
    ...{ requests, errors: 0, rejected: {}, replicas: 2, queueDepth: 0, cpus: 2, ...rest },
    ...{ durations: buckets(requests, took), waits: buckets(requests, waited) },
  };
}

function buckets(count: number, seconds: number): number[] {
  const at = DURATION_BOUNDS_S.findIndex((bound) => seconds <= bound);
  const all = new Array<number>(DURATION_BOUNDS_S.length + 1).fill(0);
  all[at < 0 ? DURATION_BOUNDS_S.length : at] = count;
  return all;
}

/** `length` steps, of which those from `from` to `to` (inclusive) are as `change` says. */
export function steps(length: number, from: number, to: number, change: Change, stepS = 60): PastStepFacts[] {
  return Array.from({ length }, (_, at) => step(at, at >= from && at <= to ? change : {}, stepS));
}

/** An hour and a half, asked about its 65th minute. */
export function past(all: readonly PastStepFacts[], more: Partial<PastFacts> = {}): PastFacts {
  return {
    ...{ name: "x", atS: START_S + 65 * 60, nowS: START_S + all.length * 60, stepS: 60, steps: all },
    ...{ changes: [], jobs: [], exceptions: [] },
    ...more,
  };
}
