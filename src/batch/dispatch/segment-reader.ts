/** Reads a segment's lines into memory as lease entries. */
import type { ByteRange, Segment } from "../../database/segment-rows.ts";
import { ObjectChanged, type OpenObject } from "../../object-store/object-store.ts";
import { LEASE_ENTRY_HEADER_BYTES } from "../../protocol/messages.ts";
import { InputError, type JobInput } from "../records/job-input.ts";
import { entriesBytes, writeEntries } from "./lease-entries.ts";
import { SegmentMemory } from "./segment-memory.ts";

const NEWLINE = 0x0a;
const SPARSE_READ_BYTES = 512 * 1024;
const NOTHING = Buffer.alloc(0);

export class LoadedSegment {
  readonly segment: Segment;
  readonly memory: Buffer;
  /**
   * If the segment has blank lines, for each item its line in its range, from 1. The lines of other segments follow
   * each other.
   */
  readonly lineNumbers: readonly number[] | undefined;
  /** The start of each batch's entry in `memory`, then the end of the last one. */
  private readonly starts: Uint32Array;

  constructor(segment: Segment, memory: Buffer, starts: Uint32Array, lineNumbers?: readonly number[]) {
    this.segment = segment;
    this.memory = memory;
    this.starts = starts;
    this.lineNumbers = lineNumbers;
  }

  holds(batchIndex: number): boolean {
    const { first_batch, batch_count } = this.segment;
    return batchIndex >= first_batch && batchIndex < first_batch + batch_count;
  }

  entryBytes(batchIndex: number): number {
    const at = batchIndex - this.segment.first_batch;
    return this.starts[at + 1]! - this.starts[at]!;
  }

  /** The lease entries of `count` batches from `first` on, without a copy: valid until `letGo`. */
  entries(first: number, count: number): Buffer {
    const at = first - this.segment.first_batch;
    return this.memory.subarray(this.starts[at]!, this.starts[at + count]!);
  }

  /** A copy of the batch's JSON array. */
  payload(batchIndex: number): Buffer {
    return Buffer.from(this.entries(batchIndex, 1).subarray(LEASE_ENTRY_HEADER_BYTES));
  }
}

/** What was read, in how much time, and since when there is anything to read (milliseconds). */
export interface InputPace {
  bytes: number;
  readMs: number;
  sinceMs: number;
  /** Something is being read now. */
  isReading: boolean;
}

/**
 * Reads segments in sequence. The last file stays open, because the next segment usually continues in it. Memory is
 * reused: callers return each segment with `letGo`.
 */
export class SegmentReader {
  private readonly input: JobInput;
  private readonly batchSize: number;
  private readonly memory = new SegmentMemory();
  /** The lines of the segment that is being loaded; empty otherwise. */
  private lines: Buffer = NOTHING;
  /** Of the lines that were kept, if there are blank ones. */
  private lineNumbers: number[] = [];
  private open: OpenObject | undefined;
  /** Of all ranges. */
  private bytes = 0;
  private readMs = 0;
  /** When the first one was read, and since when one is being read; undefined if none is (monotonic milliseconds). */
  private firstMs: number | undefined;
  private readingMs: number | undefined;

  constructor(input: JobInput, batchSize: number) {
    this.input = input;
    this.batchSize = batchSize;
  }

  /**
   * Throws InputError if a file is gone, shorter, or changed since it was enqueued. Only one call may run at a time.
   */
  async load(segment: Segment): Promise<LoadedSegment> {
    try {
      return await this.loaded(segment);
    } finally {
      this.memory.giveBack(this.lines);
      this.lines = NOTHING;
    }
  }

  private async loaded(segment: Segment): Promise<LoadedSegment> {
    this.lineNumbers = [];
    const length = await this.timed(() => this.readRanges(segment.ranges, segment.has_blank_lines));
    const memory = this.memory.take(entriesBytes(segment.batch_count, length));
    const { first_batch, batch_count } = segment;
    const lines = this.lines.subarray(0, length);
    const starts = writeEntries(lines, first_batch, batch_count, this.batchSize, memory);
    const numbers = segment.has_blank_lines ? this.lineNumbers : undefined;
    if (starts !== undefined) return new LoadedSegment(segment, memory, starts, numbers);
    throw new InputError(`${segment.ranges.at(-1)?.path} has fewer lines than when it was enqueued`);
  }

  /** How fast the input has come. Milliseconds. */
  pace(nowMs: number): InputPace {
    const readMs = this.readMs + (this.readingMs === undefined ? 0 : nowMs - this.readingMs);
    const sinceMs = this.firstMs === undefined ? 0 : nowMs - this.firstMs;
    return { bytes: this.bytes, readMs, sinceMs, isReading: this.readingMs !== undefined };
  }

  /** Returns the memory of a segment whose batches are settled: their workers have received them, or are dead. */
  letGo(loaded: LoadedSegment): void {
    this.memory.giveBack(loaded.memory);
  }

  async close(): Promise<void> {
    const { open } = this;
    this.open = undefined;
    await open?.close();
  }

  private async timed<T>(work: () => Promise<T>): Promise<T> {
    const beganMs = performance.now();
    this.firstMs ??= beganMs;
    this.readingMs = beganMs;
    try {
      return await work();
    } finally {
      this.readingMs = undefined;
      this.readMs += performance.now() - beganMs;
    }
  }

  /** Reads the ranges into `lines`, one after the other, each ending with a newline. Returns the bytes of all. */
  private async readRanges(ranges: readonly ByteRange[], hasBlankLines: boolean): Promise<number> {
    let filled = 0;
    for (const range of ranges) {
      filled = await this.readRange(range, filled, hasBlankLines).catch((error: Error) => {
        throw error instanceof InputError
          ? error
          : new InputError(`${range.path || "the job's items"}: ${error.message}`, { cause: error });
      });
      if (filled > 0 && this.lines[filled - 1] !== NEWLINE) this.lines[filled++] = NEWLINE;
    }
    return filled;
  }

  /**
   * Returns where the range ends in `lines`. Blank lines are dropped while reading: all of them may not fit into
   * memory.
   */
  private async readRange(range: ByteRange, filled: number, hasBlankLines: boolean): Promise<number> {
    const object = await this.objectOf(range);
    let line = filled;
    let lineNumber = 0;
    for (let position = range.start; position < range.end; ) {
      const wanted = Math.min(range.end - position, hasBlankLines ? SPARSE_READ_BYTES : Infinity);
      this.growBuffer(filled, wanted);
      const read = await object.read(this.lines, filled, position, wanted);
      if (read === 0) throw new InputError(`${range.path} is shorter than when it was enqueued`);
      this.bytes += read;
      filled += read;
      position += read;
      if (!hasBlankLines) continue;
      const isEnd = position === range.end;
      ({ filled, line, lineNumber } = dropBlankLines(this.lines, line, filled, isEnd, {
        lineNumber,
        kept: this.lineNumbers,
      }));
    }
    return filled;
  }

  /** Grows `lines` to hold `bytes` more bytes and a newline. */
  private growBuffer(filled: number, bytes: number): void {
    const needed = filled + bytes + 1;
    if (this.lines.length >= needed) return;
    const larger = this.memory.take(Math.max(needed, filled === 0 ? 0 : 2 * this.lines.length));
    this.lines.copy(larger, 0, 0, filled);
    this.memory.giveBack(this.lines);
    this.lines = larger;
  }

  private async objectOf({ path, etag }: ByteRange): Promise<OpenObject> {
    if (this.open?.path === path && this.open.etag === etag) return this.open;
    await this.close();
    const object = await this.input.open(path, etag);
    this.open = object;
    if (object.etag !== etag) throw new ObjectChanged(path);
    return object;
  }
}

/**
 * Removes blank lines from `line` on, in place. An incomplete last line stays at the end, unless `isEnd`: then it is
 * complete. Returns where the data ends, where the incomplete line begins, and the number of the last line. `kept` gets
 * the number of each line that is kept.
 */
function dropBlankLines(
  lines: Buffer,
  line: number,
  filled: number,
  isEnd: boolean,
  numbers: { lineNumber: number; kept: number[] },
): { filled: number; line: number; lineNumber: number } {
  let { lineNumber } = numbers;
  let kept = line;
  let at = line;
  while (at < filled) {
    const newline = lines.indexOf(NEWLINE, at);
    if ((newline < 0 || newline >= filled) && !isEnd) break;
    const end = newline < 0 || newline >= filled ? filled : newline + 1;
    lineNumber++;
    if (!isBlank(lines, at, end)) {
      numbers.kept.push(lineNumber);
      if (kept !== at) lines.copyWithin(kept, at, end);
      kept += end - at;
    }
    at = end;
  }
  const rest = filled - at;
  lines.copyWithin(kept, at, filled);
  return { filled: kept + rest, line: kept, lineNumber };
}

function isBlank(data: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (data[at]! > 0x20) return false;
  return true;
}
