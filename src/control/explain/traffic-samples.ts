/**
 * The requests of the last minutes, by API. Gateways report totals since their start; a total of weeks does not say why
 * an API is slow now. A sample of all totals is kept about every half a minute, for five minutes.
 */
import type { Reports } from "../../apis/reports.ts";
import { every } from "../../base/loop/pulse.ts";
import type { Service } from "../../base/service.ts";
import { emptyTally, type Tally } from "../../contracts/reports.ts";
import { countOf, since } from "../../explain/durations.ts";

/** A multiple of the period of an idle server's other work: no wake-up of its own. */
const SAMPLE_EVERY_MS = 32_000;
const SAMPLES = 10;

interface Sample {
  atMs: number;
  /** Undefined at the start: gateways that outlived the former controller have not reported yet. */
  tallies: ReadonlyMap<string, Tally> | undefined;
}

export interface Recent {
  seconds: number;
  tally: Pick<Tally, "answers" | "duration" | "wait" | "rejected">;
  inFlight: number;
  waiting: number;
}

export class TrafficSamples implements Service {
  /** The APIs of which most requests failed when they were judged last. */
  readonly mostFail = new Set<string>();
  private readonly reports: Reports;
  private samples: Sample[] = [];
  private end = () => {};

  constructor(reports: Reports) {
    this.reports = reports;
  }

  async start(): Promise<void> {
    this.samples = [{ atMs: performance.now(), tallies: undefined }];
    this.end = every(SAMPLE_EVERY_MS, "recent requests", () => this.sample(performance.now()));
  }

  async stop(): Promise<void> {
    this.end();
  }

  noteMost(name: string, doMostFail: boolean): void {
    if (doMostFail) this.mostFail.add(name);
    else this.mostFail.delete(name);
  }

  /** Keeps the totals as they are now, and drops the oldest ones. */
  sample(atMs: number): void {
    const last = this.samples.at(-1)?.tallies;
    const tallies = new Map<string, Tally>();
    // Most APIs are idle: they share the object of the sample before.
    for (const [name, tally] of this.reports.totals().tallies) {
      const before = last?.get(name);
      tallies.set(name, before !== undefined && isSame(before, tally) ? before : tally);
    }
    for (const name of this.mostFail) if (!tallies.has(name)) this.mostFail.delete(name);
    this.samples = [...this.samples, { atMs, tallies }].slice(-SAMPLES - 1);
  }

  /**
   * What came to an API since the oldest sample; if it was deployed meanwhile (`deployedMs`, monotonic), since the last
   * sample before that: what a former version did is over.
   */
  of(name: string, nowMs = performance.now(), deployedMs = Number.NEGATIVE_INFINITY): Recent {
    const { tally = emptyTally(), inFlight, waiting } = this.reports.totalOf(name);
    const oldest = this.samples.findLast(({ atMs }) => atMs <= deployedMs) ?? this.samples[0];
    const known = oldest?.tallies === undefined ? this.reports.totalBefore(name) : oldest.tallies.get(name);
    const before = known ?? emptyTally();
    return {
      seconds: (nowMs - (oldest?.atMs ?? nowMs)) / 1000,
      tally: grown(tally, before),
      ...{ inFlight, waiting },
    };
  }
}

function isSame(one: Tally, other: Tally): boolean {
  const refused = (tally: Tally) => Object.values(tally.rejected).reduce((sum, count) => sum + count, 0);
  return (
    countOf(one.duration) === countOf(other.duration) &&
    countOf(one.wait) === countOf(other.wait) &&
    refused(one) === refused(other)
  );
}

function grown(now: Tally, before: Tally): Recent["tally"] {
  return {
    answers: grownCounts(now.answers, before.answers),
    rejected: grownCounts(now.rejected, before.rejected),
    duration: since(now.duration, before.duration),
    wait: since(now.wait, before.wait),
  };
}

function grownCounts(now: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const counts = Object.entries(now).map(([name, count]) => [name, count - (before[name] ?? 0)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}
