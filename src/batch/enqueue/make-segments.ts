/**
 * Groups lines into batches and batches into segments. Pure: positions in, segments out. A batch may span files; a
 * segment never ends inside a batch.
 */
import {
  SEGMENT_BATCHES_MAX,
  SEGMENT_BYTES_TARGET,
  SEGMENT_RANGES_BYTES_TARGET,
} from "../../contracts/limits/jobs.ts";
import type { ByteRange, RangeLines, Segment } from "../../database/segment-rows.ts";
import { OpenBatch } from "./open-batch.ts";

export type NewSegment = Omit<Segment, "settled" | "settled_count">;

/** Names of fields, numbers and punctuation of a range as JSON. */
const RANGE_JSON_BYTES = 80;

/** About the bytes of a range in the row of its segment. */
export function rangeRowBytes({ path, etag, lines }: ByteRange): number {
  const names = Buffer.byteLength(path) + Buffer.byteLength(etag) + Buffer.byteLength(lines?.file ?? "");
  return RANGE_JSON_BYTES + names;
}

export class SegmentMaker {
  /** The batch that the last item went into. */
  readonly batch = new OpenBatch();
  nextBatch: number;
  private readonly batchSize: number;
  private firstBatch: number;
  private isBatchOpen = false;
  private items = 0;
  private itemsInRange = 0;
  private bytes = 0;
  private hasBlankLines = false;
  private ranges: ByteRange[] = [];
  private rangesBytes = 0;
  private current: ByteRange | undefined;
  /** Which lines the current range has: `items` is the number in the segment before it until the range ends. */
  private lines: RangeLines | undefined;
  private blankLines = 0;

  constructor(batchSize: number, firstBatch: number) {
    this.batchSize = batchSize;
    this.firstBatch = firstBatch;
    this.nextBatch = firstBatch;
  }

  /** Batches of the segments that were cut. */
  get cutBatches(): number {
    return this.firstBatch;
  }

  /** Pieces of files that are in no segment yet. */
  get openRanges(): number {
    return this.ranges.length;
  }

  /** `lines`: of an input file, how many come before `start`, and its path if that is another one. */
  beginFile(path: string, etag: string, start: number, lines?: Omit<RangeLines, "items">): void {
    this.current = { path, etag, start, end: start };
    this.lines = lines && { ...lines, items: this.items };
    this.blankLines = 0;
  }

  endFile(): void {
    this.closeRange(this.current!.end);
    this.current = undefined;
  }

  /** Skips what comes before `position` of the file: a byte order mark, not a line. */
  skipTo(position: number): void {
    this.current!.start = position;
    this.current!.end = position;
  }

  blankLine(end: number): void {
    this.hasBlankLines = true;
    this.blankLines++;
    this.bytes += end - this.current!.end;
    this.current!.end = end;
  }

  /**
   * One item, whose line ends at `end` of the file, and has `compactBytes` bytes without white space. Returns a segment
   * if the item completed one.
   */
  item(end: number, compactBytes: number): NewSegment | undefined {
    const current = this.current!;
    const lineBytes = end - current.end;
    this.bytes += lineBytes;
    current.end = end;
    this.items++;
    this.itemsInRange++;
    if (!this.isBatchOpen) this.batch.begin();
    this.isBatchOpen = true;
    this.batch.item(compactBytes, lineBytes);
    if (this.batch.items < this.batchSize) return undefined;
    this.closeBatch();
    return this.isFull ? this.cut() : undefined;
  }

  private get isFull(): boolean {
    return (
      this.bytes >= SEGMENT_BYTES_TARGET ||
      this.nextBatch - this.firstBatch >= SEGMENT_BATCHES_MAX ||
      this.rangesBytes >= SEGMENT_RANGES_BYTES_TARGET
    );
  }

  /** The rest, with a last batch that may be short; undefined if there is none. */
  finish(): NewSegment | undefined {
    if (this.isBatchOpen) this.closeBatch();
    return this.nextBatch > this.firstBatch ? this.cut() : undefined;
  }

  private closeBatch(): void {
    this.nextBatch++;
    this.isBatchOpen = false;
  }

  private cut(): NewSegment {
    if (this.current !== undefined) {
      const { path, etag, end } = this.current;
      this.closeRange(end);
      this.current = { path, etag, start: end, end };
    }
    const segment = {
      first_batch: this.firstBatch,
      batch_count: this.nextBatch - this.firstBatch,
      item_count: this.items,
      ranges: this.ranges,
      has_blank_lines: this.hasBlankLines,
    };
    this.firstBatch = this.nextBatch;
    this.items = 0;
    if (this.lines !== undefined) this.lines.items = 0;
    this.bytes = 0;
    this.hasBlankLines = false;
    this.ranges = [];
    this.rangesBytes = 0;
    return segment;
  }

  private closeRange(end: number): void {
    const { path, etag, start } = this.current!;
    const lines = this.linesOfRange();
    const { itemsInRange } = this;
    this.itemsInRange = 0;
    // Blank lines alone are nothing that a worker gets. Many files may have nothing else.
    if (itemsInRange === 0) return;
    const range = { path, etag, start, end, ...(lines === undefined ? {} : { lines }) };
    this.ranges.push(range);
    const rowBytes = rangeRowBytes(range);
    this.rangesBytes += rowBytes;
    this.batch.file(rowBytes);
  }

  private linesOfRange(): RangeLines | undefined {
    const { lines } = this;
    if (lines === undefined) return undefined;
    const items = this.items - lines.items;
    this.lines = { ...lines, before: lines.before + items + this.blankLines };
    this.blankLines = 0;
    return { ...lines, items };
  }
}
