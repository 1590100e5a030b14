/**
 * When a job's `timeout` is over (docs/decisions/0015-clocks.md). The record says in wall time when the job began. What is
 * left of the timeout is taken from that once, when a controller takes the job; from then on monotonic time counts, so
 * that neither a step of the wall clock nor a suspended machine ends a job that had its time before it.
 */

export interface Now {
  wallMs: number;
  monotonicMs: number;
}

export class JobDeadline {
  /** Monotonic. */
  private readonly endsMs: number;

  /** `since`: the job's submission, or the start of its newest round. Without a timeout it is never over. */
  constructor(timeoutS: number | null, since: string, now: Now) {
    const timeoutMs = timeoutS === null ? Number.POSITIVE_INFINITY : timeoutS * 1000;
    // A record from the future was written before the clock was set back: none of its time counts as used.
    const usedMs = Math.max(0, now.wallMs - Date.parse(since));
    this.endsMs = now.monotonicMs + timeoutMs - usedMs;
  }

  isOver(monotonicMs: number): boolean {
    return monotonicMs >= this.endsMs;
  }
}
