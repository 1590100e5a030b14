/** A segment's bytes in memory, cut into batches. A batch's payload is its lines as they were read: `[` line `,` line `]`. */
import type { ByteRange, Segment } from "../database/segment-store.ts";
import { ObjectChanged, type OpenObject } from "../object-store/object-store.ts";
import { InputError, type JobInput } from "./job-input.ts";

const NEWLINE = 0x0a;
const COMMA = 0x2c;

export class LoadedSegment {
  readonly segment: Segment;
  private readonly data: Buffer;
  /** Where each batch begins in `data`; one entry more than batches. */
  private readonly starts: Uint32Array;

  constructor(segment: Segment, data: Buffer, batchSize: number) {
    this.segment = segment;
    this.data = data;
    this.starts = batchStarts(data, segment.batch_count, batchSize);
  }

  holds(batchIndex: number): boolean {
    const { first_batch, batch_count } = this.segment;
    return batchIndex >= first_batch && batchIndex < first_batch + batch_count;
  }

  /** An upper bound of `writePayload`'s bytes. */
  payloadBytes(batchIndex: number): number {
    const at = batchIndex - this.segment.first_batch;
    return this.starts[at + 1]! - this.starts[at]! + 1;
  }

  /** The batch's JSON array. */
  payload(batchIndex: number): Buffer {
    const target = Buffer.allocUnsafe(this.payloadBytes(batchIndex));
    return target.subarray(0, this.writePayload(batchIndex, target, 0));
  }

  /** Writes the batch's JSON array to `target` and returns where it ends. */
  writePayload(batchIndex: number, target: Buffer, offset: number): number {
    const at = batchIndex - this.segment.first_batch;
    const start = this.starts[at]!;
    const end = this.starts[at + 1]! - 1;
    target[offset] = 0x5b;
    this.data.copy(target, offset + 1, start, end);
    const stop = offset + 1 + end - start;
    // Each line has its newline, the last one of the batch at `end`: the search never runs past the batch.
    const shift = offset + 1 - start;
    for (
      let newline = this.data.indexOf(NEWLINE, start);
      newline < end;
      newline = this.data.indexOf(NEWLINE, newline + 1)
    ) {
      target[newline + shift] = COMMA;
    }
    target[stop] = 0x5d;
    return stop + 1;
  }
}

/** Reads segments one after the other; the file of the last one stays open, because the next one mostly goes on in it. */
export class SegmentReader {
  private readonly input: JobInput;
  private readonly batchSize: number;
  private open: OpenObject | undefined;

  constructor(input: JobInput, batchSize: number) {
    this.input = input;
    this.batchSize = batchSize;
  }

  /** Throws InputError when a file is gone, shorter, or not what it was when it was enqueued. */
  async load(segment: Segment): Promise<LoadedSegment> {
    const parts: Buffer[] = [];
    for (const range of segment.ranges) {
      const part = await this.readRange(range).catch((error: Error) => {
        throw error instanceof InputError
          ? error
          : new InputError(`${range.path || "the job's items"}: ${error.message}`, { cause: error });
      });
      parts.push(part);
      if (part[part.length - 1] !== NEWLINE) parts.push(Buffer.from("\n"));
    }
    const data = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    return new LoadedSegment(
      segment,
      segment.has_blank_lines ? withoutBlankLines(data) : data,
      this.batchSize,
    );
  }

  async close(): Promise<void> {
    const { open } = this;
    this.open = undefined;
    await open?.close();
  }

  private async readRange(range: ByteRange): Promise<Buffer> {
    const object = await this.objectOf(range);
    const bytes = Buffer.allocUnsafe(range.end - range.start);
    for (let filled = 0; filled < bytes.length; ) {
      const read = await object.read(bytes, filled, range.start + filled, bytes.length - filled);
      if (read === 0) throw new InputError(`${range.path} is shorter than when it was enqueued`);
      filled += read;
    }
    return bytes;
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

function batchStarts(data: Buffer, batchCount: number, batchSize: number): Uint32Array {
  const starts = new Uint32Array(batchCount + 1);
  let at = 0;
  for (let batch = 1; batch <= batchCount; batch++) {
    for (let line = 0; line < batchSize && at < data.length; line++) {
      const newline = data.indexOf(NEWLINE, at);
      at = newline < 0 ? data.length : newline + 1;
    }
    starts[batch] = at;
  }
  return starts;
}

function withoutBlankLines(data: Buffer): Buffer {
  const kept: Buffer[] = [];
  for (let at = 0; at < data.length; ) {
    const newline = data.indexOf(NEWLINE, at);
    const end = newline < 0 ? data.length : newline + 1;
    if (!isBlank(data, at, end)) kept.push(data.subarray(at, end));
    at = end;
  }
  return Buffer.concat(kept);
}

function isBlank(data: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (data[at]! > 0x20) return false;
  return true;
}
