/**
 * Receives the reports of gateways. It stores their numbers for `quern get`, and keeps the newest of each for
 * `/-/metrics`.
 */
import { inBackground } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { METRICS_PRUNE_EVERY_MS } from "../contracts/limits/predictions.ts";
import {
  type ApiReport,
  addClass,
  emptyTally,
  type Histogram,
  type LoopDelay,
  type Report,
  type Tally,
} from "../contracts/reports.ts";
import type { Database } from "../database/database.ts";
import { newestMinutes } from "../series/newest-minutes.ts";
import { addReport, pruneMetrics, storedTotals } from "./records/api-metrics.ts";
import { RecentTraffic } from "./traffic/recent-traffic.ts";
import { MINUTES } from "./traffic/traffic-of-api.ts";

/** A gateway that has not reported for this long is gone; its totals stay in the sum. */
const GONE_AFTER_MS = 180_000;
/** With requests under way it reports each second. What it said before that is over. */
const IN_FLIGHT_MS = 10_000;

interface Known {
  report: Report;
  /** Identifies a report that repeats the last one. */
  talliesText: string;
  atMs: number;
}

export class Reports implements Service {
  /** The requests of the last minutes. */
  readonly traffic = new RecentTraffic(performance.now());
  private readonly db: Database;
  private readonly log: Log;
  private readonly known = new Map<string, Known>();
  /** Totals of gateways that are gone. */
  private readonly gone = new Map<string, Tally>();
  private writing: Promise<void> = Promise.resolve();
  /** The newest report of each gateway whose numbers wait for the write before. */
  private readonly waiting = new Map<string, Known>();
  private timer: NodeJS.Timeout | undefined;
  /** What each gateway had counted before this controller started. */
  private before: ReadonlyMap<string, [string, Tally][]> = new Map();

  constructor(db: Database, log: Log) {
    this.db = db;
    this.log = log;
  }

  async start(): Promise<void> {
    const before = await storedTotals(this.db);
    this.traffic.knowBefore(before, performance.now());
    await this.restoreTraffic();
    this.before = before;
    this.timer = setInterval(
      () => inBackground(this.write(() => pruneMetrics(this.db, new Date(wallMs())))),
      METRICS_PRUNE_EVERY_MS,
    );
  }

  /** A minute's requests came about in its middle. */
  private async restoreTraffic(): Promise<void> {
    const nowS = wallMs() / 1000;
    const minutes = await newestMinutes(this.db, MINUTES, nowS);
    this.traffic.restore(
      minutes.map(({ startS, ...counts }) => ({
        ...counts,
        agoMs: Math.max(0, nowS - startS - 30) * 1000,
      })),
      performance.now(),
    );
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.writing;
  }

  /**
   * Resolves when its numbers are durable, or at once if an earlier report of the gateway still waits for the database:
   * totals only grow, so that write saves the newest.
   */
  async take(report: Report): Promise<void> {
    this.traffic.take(report, performance.now());
    const talliesText = JSON.stringify(report.apis.map(({ name, tally }) => [name, tally]));
    const before = this.known.get(report.gateway);
    const known = { report, talliesText, atMs: performance.now() };
    this.known.set(report.gateway, known);
    if (before?.talliesText === talliesText) return;
    const isWaiting = this.waiting.has(report.gateway);
    this.waiting.set(report.gateway, known);
    if (!isWaiting) await this.write(() => this.save(report.gateway));
  }

  private save(gateway: string): Promise<void> {
    const { report, talliesText } = this.waiting.get(gateway)!;
    this.waiting.delete(gateway);
    return addReport(this.db, report, talliesText, new Date(wallMs()));
  }

  /** Sums over all gateways, by API: totals since this controller started to listen, and requests in flight. */
  totals(): {
    tallies: ReadonlyMap<string, Tally>;
    inFlight: ReadonlyMap<string, number>;
    waiting: ReadonlyMap<string, number>;
  } {
    const nowMs = performance.now();
    this.retireGone(nowMs);
    const apis = [...this.known.values()].flatMap(({ report }) => report.apis);
    const tallies = new Map(this.gone);
    for (const { name, tally } of apis) addTally(tallies, name, tally);
    return { tallies, ...this.underWay(nowMs) };
  }

  /** The same of one API; without a tally if none is known. */
  totalOf(api: string): { tally: Tally | undefined; inFlight: number; waiting: number } {
    const nowMs = performance.now();
    this.retireGone(nowMs);
    const gone = this.gone.get(api);
    const sums = new Map(gone === undefined ? [] : [[api, gone]]);
    let [inFlight, waiting] = [0, 0];
    for (const { report, atMs } of this.known.values())
      for (const one of report.apis) {
        if (one.name !== api) continue;
        addTally(sums, api, one.tally);
        if (nowMs - atMs >= IN_FLIGHT_MS) continue;
        inFlight += one.in_flight;
        waiting += one.waiting;
      }
    return { tally: sums.get(api), inFlight, waiting };
  }

  /** Requests in flight, and those of them that wait for a replica, by API. */
  underWay(nowMs = performance.now()): {
    inFlight: ReadonlyMap<string, number>;
    waiting: ReadonlyMap<string, number>;
  } {
    const recent = [...this.known.values()].filter(({ atMs }) => nowMs - atMs < IN_FLIGHT_MS);
    const present = recent.flatMap(({ report }) => report.apis);
    return {
      inFlight: sumBy(present, (api) => api.in_flight),
      waiting: sumBy(present, (api) => api.waiting),
    };
  }

  /** What the gateways that are there had counted of an API before this controller started. */
  totalBefore(api: string): Tally | undefined {
    const sums = new Map<string, Tally>();
    for (const gateway of this.known.keys())
      for (const [name, tally] of this.before.get(gateway) ?? [])
        if (name === api) addTally(sums, api, tally);
    return sums.get(api);
  }

  /** The event loop delay of each gateway. */
  loops(): LoopDelay[] {
    this.retireGone(performance.now());
    return [...this.known.values()].flatMap(({ report }) => report.loop ?? []);
  }

  private retireGone(nowMs: number): void {
    for (const [gateway, { report, atMs }] of this.known) {
      if (nowMs - atMs < GONE_AFTER_MS) continue;
      this.known.delete(gateway);
      for (const { name, tally } of report.apis) addTally(this.gone, name, tally);
    }
  }

  private write(action: () => Promise<void>): Promise<void> {
    this.writing = this.writing.then(action).catch((error: Error) => {
      this.log.error(
        { event: "metrics_not_saved", err: error },
        "the metrics of a gateway could not be saved",
      );
    });
    return this.writing;
  }
}

/** Replaces an API's sum with a new object, so that shared objects are not changed. */
function addTally(sums: Map<string, Tally>, api: string, tally: Tally): void {
  const sum = sums.get(api) ?? emptyTally();
  const classes = new Map(sum.classes);
  for (const [name, count] of tally.classes) addClass(classes, name, count);
  sums.set(api, {
    answers: sumCounts(sum.answers, tally.answers),
    rejected: sumCounts(sum.rejected, tally.rejected),
    classes: [...classes],
    duration: sumHistograms(sum.duration, tally.duration),
    wait: sumHistograms(sum.wait, tally.wait),
    values: null,
  });
}

function sumHistograms(one: Histogram, other: Histogram): Histogram {
  const buckets = one.buckets.map((count, at) => count + other.buckets[at]!);
  return { buckets, sum_s: one.sum_s + other.sum_s };
}

/** Adds counts whose labels Quern defines. */
function sumCounts(one: Record<string, number>, other: Record<string, number>): Record<string, number> {
  const sums = { ...one };
  for (const [name, count] of Object.entries(other)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

function sumBy(apis: readonly ApiReport[], countOf: (api: ApiReport) => number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const api of apis) sums.set(api.name, (sums.get(api.name) ?? 0) + countOf(api));
  return sums;
}
