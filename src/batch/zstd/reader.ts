/**
 * Unpacks one Zstandard file, in pieces on demand. Its window is bounded. This process uses few large windows at once:
 * other files wait.
 */
import { Readable, type Transform } from "node:stream";
import * as zlib from "node:zlib";
import {
  LARGE_WINDOWS_MAX,
  ZSTD_COMMON_WINDOW_BYTES,
  ZSTD_WINDOW_BYTES_MAX,
} from "../../contracts/limits/input-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { admitFrames } from "./admit.ts";
import { damaged } from "./bits.ts";
import { unpackZstd } from "./frames.ts";
import type { FrameHead } from "./heads.ts";

/** Node has it since 22.15. */
const { createZstdDecompress, constants } = zlib as unknown as {
  createZstdDecompress?: (options: { params: Record<number, number> }) => Transform;
  constants: { ZSTD_d_windowLogMax: number };
};

export class ZstdReader {
  private readonly path: string;
  private hasLarge = false;
  private isClosed = false;

  constructor(path: string) {
    this.path = path;
  }

  unpack(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const onHead = (head: FrameHead) => this.admit(head);
    return createZstdDecompress === undefined
      ? unpackZstd(chunks, onHead)
      : unpackByNode(admitFrames(chunks, onHead));
  }

  close(): void {
    this.isClosed = true;
    if (this.hasLarge) largeWindows.release();
    this.hasLarge = false;
  }

  private async admit({ windowBytes }: FrameHead): Promise<void> {
    if (windowBytes > ZSTD_WINDOW_BYTES_MAX) throw tooLarge(this.path, windowBytes);
    if (windowBytes <= ZSTD_COMMON_WINDOW_BYTES || this.hasLarge) return;
    await largeWindows.take();
    this.hasLarge = true;
    // The file may have been closed during the wait.
    if (this.isClosed) this.close();
    if (this.isClosed) damaged("reading was cancelled");
  }
}

async function* unpackByNode(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const params = { [constants.ZSTD_d_windowLogMax]: Math.log2(ZSTD_WINDOW_BYTES_MAX) };
  const inflate = createZstdDecompress!({ params });
  const source = Readable.from(chunks);
  source.on("error", (error) => inflate.destroy(error));
  yield* source.pipe(inflate) as AsyncIterable<Uint8Array>;
}

/** Lets `free` callers run at once; others wait in the order of their arrival. */
class Turns {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(free: number) {
    this.free = free;
  }

  async take(): Promise<void> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free++;
    else next();
  }
}

const largeWindows = new Turns(LARGE_WINDOWS_MAX);

function tooLarge(path: string, windowBytes: number): EnqueueError {
  const mib = (bytes: number) => Math.ceil(bytes / 1024 ** 2);
  return new EnqueueError(
    "input_unreadable",
    `${path} needs a window of ${mib(windowBytes)} MiB to be unpacked; at most ${mib(ZSTD_WINDOW_BYTES_MAX)} MiB are allowed`,
    "compress it without --ultra, and with --long=27 at most",
  );
}
