/**
 * Unpacks one Zstandard file, in pieces on demand. Its window is bounded. This process uses few large windows at once:
 * other files wait.
 */
import {
  LARGE_WINDOWS_MAX,
  ZSTD_COMMON_WINDOW_BYTES,
  ZSTD_WINDOW_BYTES_MAX,
} from "../../contracts/limits/input-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import type { FrameHead } from "./heads.ts";
import { largeWindows } from "./large-windows.ts";
import { unpacked } from "./unpack.ts";

const HELD = `${LARGE_WINDOWS_MAX} other files with windows of more than 8 MiB are being unpacked, which is the limit`;

/** What a file that waits for memory says, and when it leaves. */
export interface WindowWait {
  /** Aborted when nobody reads the file any more. */
  signal: AbortSignal;
  /** The reason of a wait that begins; undefined once it is over. */
  onWait: (reason: string | undefined) => void;
}

export class ZstdReader {
  private readonly path: string;
  private readonly wait: WindowWait;
  private hasLarge = false;

  constructor(path: string, wait: WindowWait) {
    this.path = path;
    this.wait = wait;
  }

  /** Whether another file waits for the memory that this one holds. */
  get isAwaited(): boolean {
    return this.hasLarge && largeWindows.isAwaited;
  }

  unpack(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return unpacked(chunks, (head) => this.admit(head));
  }

  close(): void {
    if (this.hasLarge) largeWindows.release();
    this.hasLarge = false;
  }

  private async admit({ windowBytes }: FrameHead): Promise<void> {
    if (windowBytes > ZSTD_WINDOW_BYTES_MAX) throw tooLarge(this.path, windowBytes);
    if (windowBytes <= ZSTD_COMMON_WINDOW_BYTES || this.hasLarge) return;
    const { signal, onWait } = this.wait;
    if (!largeWindows.isFree) onWait(`${this.path} waits to be unpacked: ${HELD}`);
    await largeWindows.take(signal);
    this.hasLarge = true;
    onWait(undefined);
  }
}

function tooLarge(path: string, windowBytes: number): EnqueueError {
  const mib = (bytes: number) => Math.ceil(bytes / 1024 ** 2);
  return new EnqueueError(
    "input_unreadable",
    `${path} needs a window of ${mib(windowBytes)} MiB to be unpacked; at most ${mib(ZSTD_WINDOW_BYTES_MAX)} MiB are allowed`,
    "compress it without --ultra, and with --long=27 at most",
  );
}
