/**
 * Walks a job's unsettled batches in order, in memory, reading segments a little ahead. Batches that come back
 * (released, or lost with their worker) go out again first; suspects go out alone.
 */
import type { Database } from "../../database/database.ts";
import { isSettled, type Segment, unsettledSegments } from "../../database/segment-rows.ts";
import type { JobInput } from "../records/job-input.ts";
import type { Isolation } from "./isolation.ts";
import { type InputPace, type LoadedSegment, SegmentReader } from "./segment-reader.ts";

const SEGMENTS_A_PAGE = 16;
const SEGMENTS_AHEAD = 2;

export class LeaseCursor {
  private readonly db: Database;
  private readonly jobId: string;
  private readonly reader: SegmentReader;
  private readonly suspects = new Set<number>();
  /** Loaded segments by their first batch, in order; dropped when all their batches are settled. */
  private readonly loaded: LoadedSegment[] = [];
  private readonly returned: number[] = [];
  private page: Segment[] = [];
  private nextPageFrom = 0;
  private isPageEnd = false;
  /** The loaded segment that is being walked, and the batch in it that is next. */
  private walking = 0;
  private nextBatch = 0;
  private filling: Promise<void> | undefined;

  private readonly isolation: Isolation | undefined;

  constructor(db: Database, jobId: string, input: JobInput, batchSize: number, isolation?: Isolation) {
    this.isolation = isolation;
    this.db = db;
    this.jobId = jobId;
    this.reader = new SegmentReader(input, batchSize);
  }

  /**
   * Takes the next batch to lease; undefined if none is loaded (see `fill`). `withNew`: also one that was never taken,
   * after those that came back.
   */
  take(withNew = true): number | undefined {
    const returned = this.returned.pop();
    if (returned !== undefined || !withNew) return returned;
    for (; this.walking < this.loaded.length; this.walking++) {
      const { segment } = this.loaded[this.walking]!;
      const end = segment.first_batch + segment.batch_count;
      this.nextBatch = Math.max(this.nextBatch, segment.first_batch);
      while (this.nextBatch < end && isSettled(segment, this.nextBatch)) this.nextBatch++;
      if (this.nextBatch < end) return this.nextBatch++;
    }
    return undefined;
  }

  /** Puts batches back, in the order in which they were taken. They are leased next. */
  putBack(batches: readonly number[]): void {
    for (let i = batches.length - 1; i >= 0; i--) this.returned.push(batches[i]!);
  }

  /** Puts back a failed batch: it is retried after the batches that came back before it. */
  putBehind(batchIndex: number): void {
    this.returned.unshift(batchIndex);
  }

  /** A suspect runs alone: nothing else is at its worker. */
  isSuspect(batchIndex: number): boolean {
    return this.suspects.size > 0 && this.suspects.has(batchIndex);
  }

  suspect(batchIndex: number): void {
    this.suspects.add(batchIndex);
  }

  get needsFill(): boolean {
    return !this.isExhausted && this.loaded.length - this.walking < SEGMENTS_AHEAD;
  }

  pace(nowMs: number): InputPace {
    return this.reader.pace(nowMs);
  }

  /** No segment is left to load. */
  get isExhausted(): boolean {
    return this.isPageEnd && this.page.length === 0;
  }

  /** Loads ahead. Concurrent callers share one load. */
  fill(): Promise<void> {
    this.filling ??= this.load().finally(() => {
      this.filling = undefined;
    });
    return this.filling;
  }

  find(batchIndex: number): LoadedSegment {
    let low = 0;
    for (let high = this.loaded.length - 1; low < high; ) {
      const middle = (low + high + 1) >> 1;
      if (this.loaded[middle]!.segment.first_batch <= batchIndex) low = middle;
      else high = middle - 1;
    }
    return this.loaded[low]!;
  }

  /** Drops segments that are settled and walked past. */
  dropSettled(): void {
    for (let i = 0; i < this.walking; ) {
      const loaded = this.loaded[i]!;
      if (loaded.segment.settled_count < loaded.segment.batch_count) {
        i++;
      } else {
        this.loaded.splice(i, 1);
        this.reader.letGo(loaded);
        this.walking--;
      }
    }
  }

  /** Stops reading and closes the input. */
  async close(): Promise<void> {
    await this.filling?.catch(() => {});
    await this.reader.close();
  }

  private async load(): Promise<void> {
    while (this.needsFill) {
      if (this.page.length === 0) await this.nextPage();
      const segment = this.page.shift();
      if (segment === undefined) break;
      await this.isolation?.load(segment);
      this.loaded.push(await this.reader.load(segment));
    }
    if (this.isExhausted) await this.reader.close();
  }

  private async nextPage(): Promise<void> {
    this.page = await unsettledSegments(this.db, this.jobId, this.nextPageFrom, SEGMENTS_A_PAGE);
    const last = this.page[this.page.length - 1];
    // All segments are there before the first batch goes out.
    this.isPageEnd = this.page.length < SEGMENTS_A_PAGE;
    if (last !== undefined) this.nextPageFrom = last.first_batch + last.batch_count;
  }
}
