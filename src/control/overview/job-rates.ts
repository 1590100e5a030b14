/** How many batches of each job are settled in a second, from what the overview saw of it before. Pure. */
const SEEN_MS = 30_000;
/** Less tells nothing. */
const SEEN_LEAST_MS = 900;

interface Seen {
  atMs: number;
  settled: number;
}

export class JobRates {
  private seen = new Map<string, Seen[]>();

  /**
   * Batches a second of each of these jobs, null for one that was not seen before. Those that are not among them are
   * forgotten. A job with fewer settled batches than before has a new round.
   */
  note(jobs: readonly { job_id: string; settled: number }[], nowMs: number): Map<string, number | null> {
    const seen = new Map<string, Seen[]>();
    for (const { job_id, settled } of jobs) {
      const before = (this.seen.get(job_id) ?? []).filter(
        (one) => one.settled <= settled && nowMs - one.atMs <= SEEN_MS,
      );
      seen.set(job_id, [...before, { atMs: nowMs, settled }]);
    }
    this.seen = seen;
    return new Map([...seen].map(([id, each]) => [id, rate(each)]));
  }
}

function rate(seen: readonly Seen[]): number | null {
  const [first, last] = [seen[0]!, seen.at(-1)!];
  const ms = last.atMs - first.atMs;
  return ms < SEEN_LEAST_MS ? null : Number((((last.settled - first.settled) * 1000) / ms).toPrecision(3));
}
