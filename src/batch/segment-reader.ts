/** A segment's bytes in memory, as lease entries; and the reader that brings them there. */
import type { ByteRange, Segment } from "../database/segment-store.ts";
import { ObjectChanged, type OpenObject } from "../object-store/object-store.ts";
import { LEASE_ENTRY_HEADER_BYTES } from "../protocol/messages.ts";
import { InputError, type JobInput } from "./job-input.ts";
import { entriesBytes, writeEntries } from "./lease-entries.ts";
import { SegmentMemory } from "./segment-memory.ts";

const NEWLINE = 0x0a;

export class LoadedSegment {
  readonly segment: Segment;
  readonly memory: Buffer;
  /** Where each batch's entry begins in `memory`; one more than batches. */
  private readonly starts: Uint32Array;

  constructor(segment: Segment, memory: Buffer, starts: Uint32Array) {
    this.segment = segment;
    this.memory = memory;
    this.starts = starts;
  }

  holds(batchIndex: number): boolean {
    const { first_batch, batch_count } = this.segment;
    return batchIndex >= first_batch && batchIndex < first_batch + batch_count;
  }

  entryBytes(batchIndex: number): number {
    const at = batchIndex - this.segment.first_batch;
    return this.starts[at + 1]! - this.starts[at]!;
  }

  /** The lease entries of `count` batches from `first` on, as they lie in memory: valid until the segment is let go of. */
  entries(first: number, count: number): Buffer {
    const at = first - this.segment.first_batch;
    return this.memory.subarray(this.starts[at]!, this.starts[at + count]!);
  }

  /** The batch's JSON array, to keep. */
  payload(batchIndex: number): Buffer {
    return Buffer.from(this.entries(batchIndex, 1).subarray(LEASE_ENTRY_HEADER_BYTES));
  }
}

/**
 * Reads segments one after the other; the file of the last one stays open, because the next one mostly goes on in it. Memory is
 * used again: whoever has done with a segment says so.
 */
export class SegmentReader {
  private readonly input: JobInput;
  private readonly batchSize: number;
  private readonly memory = new SegmentMemory();
  /** The lines of the segment that is being loaded. */
  private lines: Buffer = Buffer.alloc(0);
  private open: OpenObject | undefined;

  constructor(input: JobInput, batchSize: number) {
    this.input = input;
    this.batchSize = batchSize;
  }

  /** Throws InputError when a file is gone, shorter, or not what it was when it was enqueued. One at a time. */
  async load(segment: Segment): Promise<LoadedSegment> {
    const filled = await this.readRanges(segment.ranges);
    const length = segment.has_blank_lines ? dropBlankLines(this.lines, filled) : filled;
    const memory = this.memory.take(entriesBytes(segment.batch_count, length));
    const { first_batch, batch_count } = segment;
    const lines = this.lines.subarray(0, length);
    const starts = writeEntries(lines, first_batch, batch_count, this.batchSize, memory);
    if (starts !== undefined) return new LoadedSegment(segment, memory, starts);
    throw new InputError(`${segment.ranges.at(-1)?.path} has fewer lines than when it was enqueued`);
  }

  /** The segment's batches are settled: whoever they were leased to has received them, or is dead. */
  letGo(loaded: LoadedSegment): void {
    this.memory.giveBack(loaded.memory);
  }

  async close(): Promise<void> {
    const { open } = this;
    this.open = undefined;
    await open?.close();
  }

  /** Reads them one behind the other into `lines`; the last line of each has its newline. Returns the bytes of all. */
  private async readRanges(ranges: readonly ByteRange[]): Promise<number> {
    const needed = ranges.reduce((sum, { start, end }) => sum + end - start + 1, 0);
    if (this.lines.length < needed) this.lines = Buffer.allocUnsafeSlow(needed);
    let filled = 0;
    for (const range of ranges) {
      filled = await this.readRange(range, filled).catch((error: Error) => {
        throw error instanceof InputError
          ? error
          : new InputError(`${range.path || "the job's items"}: ${error.message}`, { cause: error });
      });
      if (this.lines[filled - 1] !== NEWLINE) this.lines[filled++] = NEWLINE;
    }
    return filled;
  }

  /** Returns where the range ends in `lines`. */
  private async readRange(range: ByteRange, filled: number): Promise<number> {
    const object = await this.objectOf(range);
    for (let position = range.start; position < range.end; ) {
      const read = await object.read(this.lines, filled, position, range.end - position);
      if (read === 0) throw new InputError(`${range.path} is shorter than when it was enqueued`);
      filled += read;
      position += read;
    }
    return filled;
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

/** Moves the lines that are not blank together, in place. Returns the bytes of all. */
function dropBlankLines(lines: Buffer, filled: number): number {
  let kept = 0;
  for (let at = 0; at < filled; ) {
    const end = lines.indexOf(NEWLINE, at) + 1;
    if (!isBlank(lines, at, end)) {
      lines.copyWithin(kept, at, end);
      kept += end - at;
    }
    at = end;
  }
  return kept;
}

function isBlank(data: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (data[at]! > 0x20) return false;
  return true;
}
