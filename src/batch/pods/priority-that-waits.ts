/**
 * Which jobs let others go first. The cluster's scheduler knows no priority of jobs, so that jobs of a lower one ask for
 * no pod while pods of a higher one have no place. Pure.
 */
import { STALLED_AFTER_MS } from "../../contracts/limits/jobs.ts";

export interface RivalJob {
  priority: number;
  /** A queue decides itself who comes first. */
  queue: string | undefined;
  /** Since when its workers ask for pods (monotonic milliseconds); undefined: none does. */
  askingSinceMs: number | undefined;
  /** The scheduler has no place for one of its pods. */
  hasNoPlace: boolean;
}

/**
 * The highest priority of jobs whose pods have no place: those below it are held back. A job that is stalled holds
 * nobody back any more: perhaps it fits nowhere.
 */
export function priorityThatWaits(jobs: Iterable<RivalJob>, nowMs: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const { priority, queue, askingSinceMs, hasNoPlace } of jobs) {
    if (queue !== undefined || askingSinceMs === undefined || !hasNoPlace) continue;
    if (nowMs - askingSinceMs < STALLED_AFTER_MS) highest = Math.max(highest, priority);
  }
  return highest;
}
