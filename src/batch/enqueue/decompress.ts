/**
 * Reads compressed files of lines like plain ones: `.gz` (RFC 1952) and `.zst` (RFC 8878), recognised by name. They are
 * read only from beginning to end. After a restart, the finished part is read again and dropped.
 */
import { ServiceError } from "../../contracts/errors.ts";
import {
  COMPRESSED_SILENT_BYTES_MAX,
  COMPRESSION_FREE_BYTES,
  COMPRESSION_RATIO_MAX,
  GZIP_PADDING_COUNTS_BYTES,
} from "../../contracts/limits/input-files.ts";
import { ObjectChanged, type OpenObject } from "../../object-store/object-store.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { type WindowWait, ZstdReader } from "../zstd/reader.ts";
import { GzipRuns } from "./gunzip.ts";

export type Compression = "gz" | "zst";

const READ_BYTES = 256 * 1024;

export function compressionOf(path: string): Compression | undefined {
  if (path.endsWith(".gz")) return "gz";
  return path.endsWith(".zst") ? "zst" : undefined;
}

export class DecompressedObject implements OpenObject {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  private readonly object: OpenObject;
  private chunks: AsyncIterator<Uint8Array>;
  private chunk: Uint8Array = new Uint8Array(0);
  private taken = 0;
  private readonly signal: AbortSignal;
  private bytesIn = 0;
  /** `bytesIn` when the last chunk came. */
  private bytesInBefore = 0;
  private bytesOut = 0;
  private position = 0;
  private readonly zstd: ZstdReader | undefined;
  private readonly gzip: GzipRuns | undefined;

  constructor(object: OpenObject, compression: Compression, wait: WindowWait) {
    this.object = object;
    this.signal = wait.signal;
    this.path = object.path;
    this.bytes = object.bytes;
    this.etag = object.etag;
    this.zstd = compression === "zst" ? new ZstdReader(object.path, wait) : undefined;
    this.gzip =
      compression === "gz"
        ? new GzipRuns(
            () => this.compressedBytes(),
            () => this.readPadding(),
          )
        : undefined;
    this.chunks = this.gzip?.begin() ?? this.zstd!.unpack(this.compressedBytes())[Symbol.asyncIterator]();
  }

  /** Whether another file waits for the memory that this one holds. */
  get isAwaited(): boolean {
    return this.zstd?.isAwaited ?? false;
  }

  async read(into: Buffer, offset: number, position: number, length: number): Promise<number> {
    while (this.position < position) if ((await this.take(position - this.position)) === 0) return 0;
    const bytes = await this.take(length);
    into.set(this.chunk.subarray(this.taken - bytes, this.taken), offset);
    return bytes;
  }

  async close(): Promise<void> {
    await this.chunks.return?.();
    this.zstd?.close();
    await this.object.close();
  }

  /** Advances by up to `length` bytes of the current chunk; 0 at the end. */
  private async take(length: number): Promise<number> {
    while (this.taken === this.chunk.length) {
      const { value, done } = await this.chunks.next().catch((error: Error) => {
        throw error instanceof ObjectChanged || error instanceof ServiceError || error instanceof EnqueueError
          ? error
          : damaged(this.path, error);
      });
      if (done) {
        const next = await this.gzip?.next();
        if (next === undefined) return 0;
        this.chunks = next;
        this.bytesInBefore -= GZIP_PADDING_COUNTS_BYTES;
        continue;
      }
      this.chunk = value as Uint8Array;
      this.taken = 0;
      this.bytesInBefore = this.bytesIn;
      this.bytesOut += this.chunk.length;
      if (this.bytesOut > COMPRESSION_FREE_BYTES && this.bytesOut > this.bytesIn * COMPRESSION_RATIO_MAX)
        throw tooDense(this.path);
    }
    const bytes = Math.min(length, this.chunk.length - this.taken);
    this.taken += bytes;
    this.position += bytes;
    return bytes;
  }

  private async *compressedBytes(): AsyncGenerator<Buffer> {
    for (;;) {
      if (this.bytesIn - this.bytesInBefore > COMPRESSED_SILENT_BYTES_MAX) throw tooSilent(this.path);
      const chunk = await this.readChunk();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Zeros cost next to nothing, so they may be as long as they are. */
  private async readPadding(): Promise<Buffer | undefined> {
    const chunk = await this.readChunk();
    this.bytesInBefore += chunk?.length ?? 0;
    return chunk;
  }

  private async readChunk(): Promise<Buffer | undefined> {
    this.signal.throwIfAborted();
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    const read = await this.object.read(buffer, 0, this.bytesIn, READ_BYTES);
    this.bytesIn += read;
    return read === 0 ? undefined : buffer.subarray(0, read);
  }
}

function damaged(path: string, cause: Error): EnqueueError {
  return new EnqueueError(
    "input_unreadable",
    `${path} cannot be decompressed: ${cause.message}`,
    "the file is damaged, cut off, or does not match its name; write it again and submit the job again",
  );
}

function tooSilent(path: string): EnqueueError {
  const mib = COMPRESSED_SILENT_BYTES_MAX / 1024 ** 2;
  return new EnqueueError(
    "input_unreadable",
    `${path} has ${mib} MiB that unpack to nothing`,
    "the file is damaged, or was made to keep the server busy; decompress it yourself if you trust it",
  );
}

function tooDense(path: string): EnqueueError {
  return new EnqueueError(
    "compression_ratio",
    `${path} unpacks to more than ${COMPRESSION_RATIO_MAX} times its size`,
    "decompress the file yourself if you trust it",
  );
}
