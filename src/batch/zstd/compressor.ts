/**
 * Compresses one stream to one Zstandard frame: by Node's compressor if it has one, otherwise on a thread. Neither
 * blocks the event loop. The frame's window has PART_WINDOW_BYTES.
 */
import { once } from "node:events";
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { ZSTD_LEVEL } from "../../contracts/limits/outputs.ts";
import { ThreadCompressor } from "./thread-compressor.ts";

/** Node has it since 22.15. */
const { createZstdCompress, constants } = zlib as unknown as {
  createZstdCompress?: (options: { params: Record<number, number> }) => Transform;
  constants: { ZSTD_c_compressionLevel: number };
};

/** One call at a time. After an error only `close` is left. */
export interface ZstdCompressor {
  /** Takes the bytes, which are not to be used afterwards. Resolves to what is ready, perhaps nothing. */
  compress(bytes: Uint8Array): Promise<Uint8Array>;
  /** Ends the frame. Resolves to the rest. */
  end(): Promise<Uint8Array>;
  /** Frees the memory. */
  close(): void;
}

export function openCompressor(): ZstdCompressor {
  return createZstdCompress === undefined ? new ThreadCompressor() : new NodeCompressor();
}

/** Node compresses on a thread of its pool. */
class NodeCompressor implements ZstdCompressor {
  private readonly stream = createZstdCompress!({
    params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL },
  });
  private ready: Buffer[] = [];

  constructor() {
    this.stream.on("data", (packed: Buffer) => this.ready.push(packed));
    // The call that is running gets the error too.
    this.stream.on("error", () => {});
  }

  async compress(bytes: Uint8Array): Promise<Uint8Array> {
    await new Promise<void>((resolve, reject) => {
      this.stream.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
    return this.takeReady();
  }

  async end(): Promise<Uint8Array> {
    const ended = once(this.stream, "end");
    this.stream.end();
    await ended;
    return this.takeReady();
  }

  close(): void {
    this.stream.destroy();
  }

  private takeReady(): Buffer {
    return Buffer.concat(this.ready.splice(0));
  }
}
