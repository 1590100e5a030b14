/**
 * Pure: levels of an API or the server in one minute or hour. The last ones hold until the next row, so a row is
 * needed only where something changed.
 */
import { keptFrom, startOf, type Window } from "./steps.ts";

/** Null: nothing is known, as while the server is stopped, or the API has no such level. */
export interface Levels {
  replicas: number | null;
  in_flight: number | null;
  queue_depth: number | null;
  cpus: number | null;
}
export type LevelName = keyof Levels;

/** The levels of a step: the last ones, and the highest. */
export interface LevelRow extends Levels {
  at_s: number;
  in_flight_max: number | null;
  queue_depth_max: number | null;
  cpus_max: number | null;
}

export const UNKNOWN: Levels = { replicas: null, in_flight: null, queue_depth: null, cpus: null };

export function rowOf(at_s: number, levels: Levels): LevelRow {
  const { in_flight, queue_depth, cpus } = levels;
  return { at_s, ...levels, in_flight_max: in_flight, queue_depth_max: queue_depth, cpus_max: cpus };
}

/** The row of the same step after one more sample. */
export function withSample(row: LevelRow, levels: Levels): LevelRow {
  return {
    at_s: row.at_s,
    ...levels,
    in_flight_max: highest(row.in_flight_max, levels.in_flight),
    queue_depth_max: highest(row.queue_depth_max, levels.queue_depth),
    cpus_max: highest(row.cpus_max, levels.cpus),
  };
}

/** Whether the row says more than that the levels `before` it still hold. */
export function isNews(before: Levels, row: LevelRow): boolean {
  const quiet = rowOf(row.at_s, before);
  return (Object.keys(quiet) as (keyof LevelRow)[]).some((name) => quiet[name] !== row[name]);
}

/**
 * The level of each step of `window`: replicas at its end, and the highest of the others, with those that held at its
 * beginning. `rows` begin with the last one before the window, if there is any, and are in order. Nothing is known of
 * steps after `nowS`, and of those that are no longer kept.
 */
export function levelsIn(
  rows: readonly LevelRow[],
  window: Window,
  nowS: number,
): Record<LevelName, (number | null)[]> {
  const steps: Record<LevelName, (number | null)[]> = {
    replicas: [],
    in_flight: [],
    queue_depth: [],
    cpus: [],
  };
  let held = UNKNOWN;
  let at = 0;
  for (; at < rows.length && rows[at]!.at_s < window.startS; at++) held = levelsOf(rows[at]!);
  for (let startS = window.startS; startS < window.endS; startS += window.stepS) {
    let step = rowOf(startS, held);
    for (; at < rows.length && startOf(rows[at]!.at_s, window.stepS) === startS; at++) {
      step = joined(step, rows[at]!);
      held = levelsOf(rows[at]!);
    }
    const isKnown = startS <= nowS && startS >= keptFrom(window.stepS, nowS);
    steps.replicas.push(isKnown ? step.replicas : null);
    steps.in_flight.push(isKnown ? step.in_flight_max : null);
    steps.queue_depth.push(isKnown ? step.queue_depth_max : null);
    steps.cpus.push(isKnown ? step.cpus_max : null);
  }
  return steps;
}

/** Of two rows, the later of which may be of the same step. */
function joined(row: LevelRow, later: LevelRow): LevelRow {
  return {
    ...later,
    at_s: row.at_s,
    in_flight_max: highest(row.in_flight_max, later.in_flight_max),
    queue_depth_max: highest(row.queue_depth_max, later.queue_depth_max),
    cpus_max: highest(row.cpus_max, later.cpus_max),
  };
}

export function levelsOf({ replicas, in_flight, queue_depth, cpus }: Levels): Levels {
  return { replicas, in_flight, queue_depth, cpus };
}

function highest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.max(one, other);
}
