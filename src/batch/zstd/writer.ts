/**
 * Writes one Zstandard frame. What is appended is compressed in pieces of one length, so the frame does not depend on
 * how it was appended. In memory are one piece and the state of the compressor.
 */
import { openCompressor, type ZstdCompressor } from "./compressor.ts";

/** Two blocks of the format. Each piece costs a switch to another thread. */
const PIECE_BYTES = 256 * 1024;

export class ZstdWriter {
  /** What was appended so far. */
  unpackedBytes = 0;
  private readonly write: (packed: Uint8Array) => Promise<void>;
  private readonly compressor: ZstdCompressor;
  private piece = newPiece();
  private filled = 0;

  /** `write` gets the frame, in order. It has its own memory. */
  constructor(write: (packed: Uint8Array) => Promise<void>, compressor = openCompressor()) {
    this.write = write;
    this.compressor = compressor;
  }

  /** `bytes` may change once this has resolved. */
  async append(bytes: Uint8Array): Promise<void> {
    this.unpackedBytes += bytes.length;
    for (let taken = 0; taken < bytes.length; ) {
      const some = bytes.subarray(taken, taken + PIECE_BYTES - this.filled);
      this.piece.set(some, this.filled);
      this.filled += some.length;
      taken += some.length;
      if (this.filled === PIECE_BYTES) await this.compress();
    }
  }

  /** Ends the frame. Everything is written then. */
  async end(): Promise<void> {
    if (this.filled > 0) await this.compress();
    await this.pass(await this.compressor.end());
  }

  /** Frees the memory, also after an error. */
  close(): void {
    this.compressor.close();
  }

  private async compress(): Promise<void> {
    const piece = this.piece.subarray(0, this.filled);
    this.piece = newPiece();
    this.filled = 0;
    await this.pass(await this.compressor.compress(piece));
  }

  private async pass(packed: Uint8Array): Promise<void> {
    if (packed.length > 0) await this.write(packed);
  }
}

/** Memory of its own, which may be transferred to a thread. */
function newPiece(): Uint8Array {
  return new Uint8Array(PIECE_BYTES);
}
