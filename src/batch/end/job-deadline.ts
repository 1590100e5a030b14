/**
 * Decides when a job's `timeout` is over (docs/decisions/0015-clocks.md). The record has the wall time at which the job
 * began. From it, what is left of the timeout is computed once, when a controller takes the job. From then on monotonic
 * time counts. So neither a step of the wall clock nor a suspended machine ends a job that has time left.
 */
import { wallMs } from "../../base/clock.ts";

export interface Now {
  wallMs: number;
  monotonicMs: number;
}

export class JobDeadline {
  /** Monotonic milliseconds. Infinite without a timeout. */
  readonly endsMs: number;

  /** `since`: the job's submission, or the start of its newest round. Without a timeout it is never over. */
  constructor(timeoutS: number | null, since: string, now: Now = rightNow()) {
    const timeoutMs = timeoutS === null ? Number.POSITIVE_INFINITY : timeoutS * 1000;
    // A record from the future was written before the clock was set back: none of its time counts as used.
    const usedMs = Math.max(0, now.wallMs - Date.parse(since));
    this.endsMs = now.monotonicMs + timeoutMs - usedMs;
  }

  isOver(monotonicMs: number): boolean {
    return monotonicMs >= this.endsMs;
  }
}

function rightNow(): Now {
  return { wallMs: wallMs(), monotonicMs: performance.now() };
}
