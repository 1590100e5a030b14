/** Takes the reports of gateways: keeps their numbers for `quern get`, and the newest of each for `/-/metrics`. */
import { wallMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { METRICS_PRUNE_EVERY_MS } from "../contracts/limits.ts";
import { emptyTally, type Histogram, type Report, type Tally } from "../contracts/reports.ts";
import type { Database } from "../database/database.ts";
import { addReport, pruneMetrics } from "./api-metrics.ts";

/** A gateway that has said nothing for this long is gone; its totals stay in the sum. */
const GONE_AFTER_MS = 60_000;

interface Known {
  report: Report;
  atMs: number;
}

export class Reports implements Service {
  private readonly db: Database;
  private readonly log: Log;
  private readonly known = new Map<string, Known>();
  /** Totals of gateways that are gone. */
  private readonly gone: Record<string, Tally> = {};
  private writing: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(db: Database, log: Log) {
    this.db = db;
    this.log = log;
  }

  async start(): Promise<void> {
    this.timer = setInterval(
      () => this.write(() => pruneMetrics(this.db, new Date(wallMs()))),
      METRICS_PRUNE_EVERY_MS,
    );
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.writing;
  }

  /** Resolves when its numbers are durable. */
  async take(report: Report): Promise<void> {
    const before = this.known.get(report.gateway);
    this.known.set(report.gateway, { report, atMs: performance.now() });
    const isNew = JSON.stringify(before?.report.tallies) !== JSON.stringify(report.tallies);
    if (isNew) await this.write(() => addReport(this.db, report, new Date(wallMs())));
  }

  /** Of all gateways together, by API: totals since this controller began to listen, and what is under way. */
  totals(): {
    tallies: Record<string, Tally>;
    inFlight: Record<string, number>;
    waiting: Record<string, number>;
  } {
    this.retireGone(performance.now());
    const reports = [...this.known.values()].map(({ report }) => report);
    return {
      tallies: sumTallies([this.gone, ...reports.map((report) => report.tallies)]),
      inFlight: sumCounts(reports.map((report) => report.in_flight)),
      waiting: sumCounts(reports.map((report) => report.waiting)),
    };
  }

  private retireGone(nowMs: number): void {
    for (const [gateway, { report, atMs }] of this.known) {
      if (nowMs - atMs < GONE_AFTER_MS) continue;
      this.known.delete(gateway);
      Object.assign(this.gone, sumTallies([this.gone, report.tallies]));
    }
  }

  private write(action: () => Promise<void>): Promise<void> {
    this.writing = this.writing.then(action).catch((error: Error) => {
      this.log.error({ err: error }, "the numbers of a gateway could not be kept");
    });
    return this.writing;
  }
}

function sumTallies(all: readonly Record<string, Tally>[]): Record<string, Tally> {
  const sums: Record<string, Tally> = {};
  for (const tallies of all) {
    for (const [api, tally] of Object.entries(tallies)) {
      sums[api] ??= emptyTally();
      const sum = sums[api];
      sum.answers = sumCounts([sum.answers, tally.answers]);
      sum.rejected = sumCounts([sum.rejected, tally.rejected]);
      sum.classes = sumCounts([sum.classes, tally.classes]);
      addHistogram(sum.duration, tally.duration);
      addHistogram(sum.wait, tally.wait);
    }
  }
  return sums;
}

function addHistogram(sum: Histogram, other: Histogram): void {
  sum.buckets = sum.buckets.map((count, at) => count + other.buckets[at]!);
  sum.sum_s += other.sum_s;
}

function sumCounts(all: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}
