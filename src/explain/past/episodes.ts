/** When something differed: runs of steps, in which a few quiet ones do not end a run. Pure. */
import { MEASURES, type Measure, type Normal, normalBefore, normalOf } from "./measures.ts";
import type { PastFacts, PastStepFacts } from "./past-facts.ts";

/** So many steps in which nothing differs are a part of the run around them. */
const QUIET_STEPS = 2;
/** How far from the time that was asked for a run may be. */
const NEAR_STEPS = 10;
const NEAR_HOURS = 2;

/** What is normal in a day is found anew after so many steps, from so many; in the beginning after each. */
const NORMAL_EVERY = 10;
const CALM_STEPS = 180;
const CALM_FEW = 30;
/** Nobody has asked about such a time: a smaller rise is not worth a line. */
const TIMES_OF_DAY = 3;

export interface Run {
  first: number;
  last: number;
}

/** A measure that differed, where, and what was normal before. */
export interface Episode extends Run {
  measure: Measure;
  normal: Normal;
}

/** The runs of steps for which `differs` holds. */
export function runsOf(differs: readonly boolean[]): Run[] {
  const runs: Run[] = [];
  for (const [at, isOne] of differs.entries()) {
    if (!isOne) continue;
    const open = runs.at(-1);
    if (open !== undefined && at - open.last <= QUIET_STEPS + 1) open.last = at;
    else runs.push({ first: at, last: at });
  }
  return runs;
}

/** The run that has the step `at`, or the nearest one that is not further than `near` steps away. */
export function nearest<R extends Run>(runs: readonly R[], at: number, near: number): R | undefined {
  const distance = ({ first, last }: Run) => Math.max(0, first - at, at - last);
  return runs
    .filter((run) => distance(run) <= near)
    .reduce<R | undefined>(
      (best, run) => (best === undefined || distance(run) < distance(best) ? run : best),
      undefined,
    );
}

/** What differed around the time that was asked for. Normal is what was before it. */
export function episodesAt({ steps, atS, stepS }: Pick<PastFacts, "steps" | "atS" | "stepS">): Episode[] {
  const at = steps.findLastIndex(({ startS }) => startS <= atS);
  const near = stepS >= 3_600 ? NEAR_HOURS : NEAR_STEPS;
  const base = steps.slice(0, Math.max(0, at));
  return MEASURES.flatMap((measure) => {
    const runAbove = (normal: Normal) =>
      nearest(runsOf(steps.map((step) => isAbove(measure, normal, step))), at, near);
    const roughly = normalOf(measure, base);
    const suspect = roughly === undefined ? undefined : runAbove(roughly);
    if (suspect === undefined) return [];
    // Again without the trouble itself, so that the usual ups and downs are none.
    const normal = normalBefore(measure, steps.slice(0, suspect.first)) ?? roughly!;
    const run = runAbove(normal);
    return run === undefined ? [] : [{ ...run, measure, normal }];
  });
}

/**
 * The runs of a whole day in which requests failed, and those in which they were slow. Each kind for itself: slow requests
 * say nothing about whether some still fail. Normal is what was before: steps that differ are no part of it, so something
 * that stays slow does not become normal.
 */
export function runsOfDay(steps: readonly PastStepFacts[]): { failing: Run[]; slow: Run[] } {
  const [errors, latency] = MEASURES.map((measure) => runsOf(differing(measure, steps)));
  return { failing: errors!, slow: latency! };
}

function differing(measure: Measure, steps: readonly PastStepFacts[]): boolean[] {
  const calm: PastStepFacts[] = [];
  let normal: Normal | undefined;
  return steps.map((step, at) => {
    // Sorting for each step of a day would take a tenth of a second.
    if (calm.length < CALM_FEW || at % NORMAL_EVERY === 0)
      normal = normalBefore(measure, calm.slice(-CALM_STEPS));
    const differs =
      normal !== undefined &&
      isAbove(measure, { ...normal, bound: Math.max(normal.bound, TIMES_OF_DAY * normal.median) }, step);
    if (!differs && measure.of(step) !== null) calm.push(step);
    return differs;
  });
}

function isAbove({ of }: Measure, { bound }: Normal, step: PastStepFacts): boolean {
  const value = of(step);
  return value !== null && value > bound;
}
