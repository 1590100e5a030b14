/**
 * An object that is read by ranges over a network. Consecutive reads are served from one request, whose range doubles
 * from request to request. If a connection breaks off, the read throws an error, and the same read may be retried.
 */
import type { Readable } from "node:stream";
import { ServiceError } from "../contracts/errors.ts";
import { STORE_SILENCE_MS } from "../contracts/limits/stores.ts";
import type { OpenObject } from "./object-store.ts";

const EMPTY = Buffer.alloc(0);
/** A range is at most this long: if the caller stops reading, the rest of it is dropped with its connection. */
const RANGE_BYTES_MAX = 32 * 1024 * 1024;

export interface RangeSource {
  path: string;
  /** Infinity if it is not known. */
  bytes: number;
  etag: string;
  /** The bytes from `start` up to `end`, or to the object's own end; undefined if that is before `start`. */
  request(start: number, end: number, signal: AbortSignal): Promise<RangeAnswer | undefined>;
}

export interface RangeAnswer {
  stream: Readable;
  /** The header, such as `bytes 0-99/1000`; undefined if the whole object is sent. */
  contentRange: string | undefined;
}

interface Range {
  stream: Readable;
  chunks: AsyncIterator<Buffer>;
  /** Received and not yet read. */
  chunk: Buffer;
  /** Position in the object of the next byte to read. */
  position: number;
  end: number;
  /** A response that ends before this position has broken off. */
  wholeFrom: number;
}

export class RangedObject implements OpenObject {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  private readonly source: RangeSource;
  private range: Range | undefined;
  private lastEnd = -1;
  private lastLength = 0;

  constructor(source: RangeSource) {
    this.source = source;
    this.path = source.path;
    this.bytes = source.bytes;
    this.etag = source.etag;
  }

  async read(into: Buffer, offset: number, position: number, length: number): Promise<number> {
    if (position >= this.bytes || length === 0) return 0;
    if (this.range?.position !== position) this.drop();
    this.range ??= await this.open(position, length);
    if (this.range === undefined || !(await this.receive(this.range))) return 0;
    const { range } = this;
    // The response may have more: a cache may align ranges to its blocks, and say so (RFC 9110, section 15.3.7).
    const bytes = range.chunk.copy(into, offset, 0, Math.min(length, range.end - range.position));
    range.chunk = range.chunk.subarray(bytes);
    range.position += bytes;
    if (range.position === range.end) this.drop();
    return bytes;
  }

  async close(): Promise<void> {
    this.drop();
  }

  private async open(position: number, length: number): Promise<Range | undefined> {
    const isSequel = position === this.lastEnd;
    const wanted = isSequel ? Math.max(length, Math.min(RANGE_BYTES_MAX, 2 * this.lastLength)) : length;
    const end = Math.min(position + wanted, this.bytes);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), STORE_SILENCE_MS);
    try {
      const answer = await this.source.request(position, end, abort.signal);
      this.lastEnd = end;
      this.lastLength = end - position;
      return answer && this.rangeOf(answer, position, end);
    } catch (error) {
      throw abort.signal.aborted ? this.brokenOff(position, silence()) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Checks the range of a response: stores, and proxies in front of them, may send other bytes than those requested.
   */
  private rangeOf({ stream, contentRange }: RangeAnswer, position: number, end: number): Range {
    const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(contentRange ?? "bytes 0-0/*") ?? [];
    if (Number(first) !== position) {
      stream.on("error", () => {}).destroy();
      const answer =
        contentRange === undefined ? "the whole object" : JSON.stringify(contentRange.slice(0, 100));
      throw this.brokenOff(position, new Error(`the store answered the range with ${answer}`));
    }
    // Without the object's size, only the response says where the object ends.
    const size = Number.isFinite(this.bytes) ? this.bytes : total === "*" ? 0 : Number(total);
    const wholeFrom = Math.min(end, size);
    return { stream, chunks: stream[Symbol.asyncIterator](), chunk: EMPTY, position, end, wholeFrom };
  }

  /** Waits for bytes; false at the end of the object. */
  private async receive(range: Range): Promise<boolean> {
    if (range.chunk.length > 0) return true;
    const timer = setTimeout(() => range.stream.destroy(silence()), STORE_SILENCE_MS);
    try {
      const { value, done } = await range.chunks.next();
      if (done && range.position < range.wholeFrom) throw new Error("the store sent less than was requested");
      if (done) this.drop();
      else range.chunk = value;
      return done !== true;
    } catch (error) {
      this.drop();
      throw this.brokenOff(range.position, error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  private drop(): void {
    // The stream is not needed any more, so its errors are ignored.
    this.range?.stream.on("error", () => {}).destroy();
    this.range = undefined;
  }

  private brokenOff(position: number, cause: Error): ServiceError {
    const message = `${this.path}: the connection was lost at byte ${position}: ${cause.message}`;
    return new ServiceError("store_unreachable", message, { cause });
  }
}

function silence(): Error {
  return new Error(`the store sent nothing for ${STORE_SILENCE_MS / 1000} s`);
}
