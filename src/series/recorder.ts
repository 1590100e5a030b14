/**
 * Records what has no durable counter: the levels of APIs and the server. It samples them with each report of a gateway
 * and every four seconds, and keeps the minute in memory; a minute that brought no change is not written. When a minute
 * ends, the batches of jobs go into the series too. A kill -9 loses the levels of one minute, and nothing else.
 */
import { inBackground } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { every } from "../base/loop/pulse.ts";
import type { Service } from "../base/service.ts";
import { type Database, unavailabilityOf } from "../database/database.ts";
import { countBatches } from "./batch-rows.ts";
import { newestLevels, saveLevels } from "./level-rows.ts";
import { isNews, type LevelRow, type Levels, levelsOf, rowOf, UNKNOWN, withSample } from "./levels.ts";
import { pruneSeries } from "./retention.ts";
import { HOUR_S, minuteOf, startOf } from "./steps.ts";

/** As often as other regular work of a server at rest, so that it needs no wake-up of its own. */
const SAMPLE_EVERY_MS = 4_000;

export interface RecorderDeps {
  db: Database;
  log: Log;
  /** The levels now, of each real-time API, and of the server under ''. */
  levels: () => Map<string, Levels>;
  nowMs?: () => number;
}

/** The minute of one API in memory. */
interface Minute {
  /** What the rows say that were saved. */
  saved: Levels;
  row: LevelRow;
}

export class SeriesRecorder implements Service {
  private readonly deps: RecorderDeps;
  /** Waits while it cannot be reached: the minutes come later, in order. */
  private readonly db: Database;
  private readonly leaving = new AbortController();
  /** The server stops without its database: what is left is lost. */
  private hasGivenUp = false;
  private readonly nowMs: () => number;
  private readonly minutes = new Map<string, Minute>();
  /** Rows of the last minute that are being written. */
  private writing: readonly (readonly [api: string, row: LevelRow])[] = [];
  private work: Promise<void> = Promise.resolve();
  private minuteS: number;
  /** The hour in which old rows were removed last. */
  private prunedS = 0;
  private end: (() => void) | undefined;

  constructor(deps: RecorderDeps) {
    this.deps = deps;
    this.db = deps.db.patient?.(this.leaving.signal) ?? deps.db;
    this.nowMs = deps.nowMs ?? wallMs;
    this.minuteS = minuteOf(this.nowMs() / 1000);
  }

  async start(): Promise<void> {
    const rows = await newestLevels(this.db);
    for (const [api, row] of rows) this.minutes.set(api, { saved: levelsOf(row), row });
    // Since when there are series, also if the server is killed in its first minute.
    if (!rows.has("")) await saveLevels(this.db, [["", rowOf(this.minuteS, UNKNOWN)]]);
    this.end = every(SAMPLE_EVERY_MS, "the series", () => this.sample());
    this.sample();
  }

  /** From here on nothing is known, until the next controller samples. */
  async stop(): Promise<void> {
    if (this.end === undefined) return;
    this.sample();
    this.end();
    this.end = undefined;
    this.leaving.abort();
    for (const minute of this.minutes.values()) minute.row = withSample(minute.row, UNKNOWN);
    await this.idle();
    await this.turn(this.minuteS, this.news());
  }

  /** Resolves when the minutes that have ended are saved. */
  async idle(): Promise<void> {
    await this.work;
  }

  /** The minute that batches and levels are counted to. */
  get currentMinute(): number {
    return this.minuteS;
  }

  /** Rows of an API (or '') that are not saved yet, in order. */
  unsaved(api: string): LevelRow[] {
    const minute = this.minutes.get(api);
    const rows = this.writing.filter(([name]) => name === api).map(([, row]) => row);
    return minute?.row.at_s === this.minuteS ? [...rows, minute.row] : rows;
  }

  /** Takes a sample, and ends the minute if it is over. Called at most once a second for each gateway. */
  sample(): void {
    if (this.end === undefined) return;
    const nowS = minuteOf(this.nowMs() / 1000);
    if (nowS !== this.minuteS) {
      const endedS = this.minuteS;
      this.minuteS = nowS;
      const rows = this.news();
      this.work = this.work.then(() => this.turn(endedS, rows));
      inBackground(this.work);
    }
    const levels = this.deps.levels();
    for (const [api, now] of levels) this.add(api, now);
    for (const api of this.minutes.keys()) if (!levels.has(api)) this.minutes.delete(api);
  }

  private add(api: string, now: Levels): void {
    const known = this.minutes.get(api);
    const saved = known?.saved ?? UNKNOWN;
    const isSameMinute = known?.row.at_s === this.minuteS;
    const row = isSameMinute ? withSample(known.row, now) : rowOf(this.minuteS, now);
    this.minutes.set(api, { saved, row });
  }

  /** The rows of the minute that say something new. */
  private news(): [string, LevelRow][] {
    return [...this.minutes]
      .filter(([, { saved, row }]) => isNews(saved, row))
      .map(([api, { row }]) => [api, row]);
  }

  /** Writes the rows of a minute, and counts its batches. If that fails, a later minute has the levels. */
  private async turn(endedS: number, rows: [string, LevelRow][]): Promise<void> {
    const { db } = this;
    if (this.hasGivenUp) return;
    try {
      this.writing = rows;
      if (rows.length > 0) await saveLevels(db, rows);
      for (const [api, row] of rows) {
        const minute = this.minutes.get(api);
        if (minute !== undefined) minute.saved = levelsOf(row);
      }
      await countBatches(db, endedS);
      const hourS = startOf(this.minuteS, HOUR_S);
      if (hourS === this.prunedS) return;
      await pruneSeries(db, this.minuteS, () => this.end === undefined);
      this.prunedS = hourS;
    } catch (error) {
      this.hasGivenUp = this.leaving.signal.aborted && unavailabilityOf(error) !== undefined;
      this.deps.log.error(
        { event: "series_not_saved", err: error as Error },
        "the series could not be saved; a later minute has them",
      );
    } finally {
      this.writing = [];
    }
  }
}
