/** Which APIs are worth the question whether they became slow: cheap, from what is in memory. Pure. */
import { percentileOf } from "../../contracts/reports.ts";
import { SLOW_S } from "../durations.ts";
import { rises, summed } from "./measures.ts";

/** So many minutes are compared with as many before, wherever these were fastest. */
const MINUTES_COMPARED = 5;

/**
 * Whether its newest requests took long, or clearly longer than some before. It doubts more often than an explanation
 * finds something. `minutes`: the durations of each, by bucket, in order.
 */
export function isSuspect(minutes: readonly (readonly number[])[]): boolean {
  const p95 = (some: readonly (readonly number[])[]) => percentileOf(summed(some), 0.95);
  const newest = p95(minutes.slice(-MINUTES_COMPARED));
  if (newest === null) return false;
  if (newest >= SLOW_S) return true;
  const before = Math.max(0, minutes.length - MINUTES_COMPARED);
  const fastest = Array.from({ length: Math.ceil(before / MINUTES_COMPARED) }, (_, at) => {
    const from = at * MINUTES_COMPARED;
    return p95(minutes.slice(from, Math.min(before, from + MINUTES_COMPARED)));
  });
  return fastest.some((value) => value !== null && rises(value, newest));
}
