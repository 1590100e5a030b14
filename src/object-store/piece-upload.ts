/**
 * Cuts the bytes of an upload into pieces, and sends one piece while the next one fills up. A piece stays in memory until
 * it has arrived, so that after an error it is sent again. It does not decide when to retry: its caller calls again.
 */
import { STORE_PIECES_MAX } from "../contracts/limits/stores.ts";
import type { Upload, Written } from "./object-store.ts";

/** The first bytes of a buffer: many uploads are small. */
const BUFFER_BYTES_FIRST = 64 * 1024;

export interface Piece {
  /** 1, 2, … */
  number: number;
  /** Its first byte in the object. */
  position: number;
  bytes: Buffer;
}

/** A store's side of one upload. Each call may be repeated after an error; no two run at the same time. */
export interface PieceSink {
  /** The size of all pieces but the last. */
  readonly pieceBytes: number;
  send(piece: Piece): Promise<void>;
  /** `last`: the bytes that were not sent yet, perhaps none. They are the whole object if their number is 1. */
  complete(last: Piece): Promise<Written>;
  /** Removes what was sent. */
  abort(): Promise<void>;
}

interface Sending {
  piece: Piece;
  /** Undefined after an error. */
  arrived: Promise<void> | undefined;
}

export class PieceUpload implements Upload {
  private readonly path: string;
  private readonly sink: PieceSink;
  private number = 1;
  private position = 0;
  private filling: Buffer = Buffer.alloc(0);
  private filled = 0;
  /** The buffer of the piece that arrived last. */
  private spare: Buffer | undefined;
  private sending: Sending | undefined;
  /** Bytes of the chunk of a failed `write` that are in the buffer already. */
  private taken = 0;
  private written: Written | undefined;
  private isAborted = false;

  constructor(path: string, sink: PieceSink) {
    this.path = path;
    this.sink = sink;
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.isAborted || this.written !== undefined) throw new Error(`the upload of ${this.path} has ended`);
    for (;;) {
      this.taken += this.take(chunk.subarray(this.taken));
      if (this.taken === chunk.length) break;
      await this.sendFilled();
    }
    this.taken = 0;
  }

  async complete(): Promise<Written> {
    if (this.isAborted) throw new Error(`the upload of ${this.path} was aborted`);
    await this.arrival();
    this.written ??= await this.sink.complete(this.piece());
    this.filling = Buffer.alloc(0);
    this.spare = undefined;
    return this.written;
  }

  async abort(): Promise<void> {
    if (this.written !== undefined) return;
    this.isAborted = true;
    // A piece that is being sent could arrive after the upload was removed, and stay.
    await this.sending?.arrived?.catch(() => {});
    await this.sink.abort();
  }

  /** Copies what fits into the piece; returns the number of bytes. */
  private take(bytes: Uint8Array): number {
    const { pieceBytes } = this.sink;
    const taken = bytes.subarray(0, pieceBytes - this.filled);
    const needed = this.filled + taken.length;
    if (needed > this.filling.length) {
      const larger = Math.max(needed, 2 * this.filling.length, Math.min(BUFFER_BYTES_FIRST, pieceBytes));
      const buffer = Buffer.allocUnsafeSlow(Math.min(larger, pieceBytes));
      this.filling.copy(buffer, 0, 0, this.filled);
      this.filling = buffer;
    }
    this.filling.set(taken, this.filled);
    this.filled = needed;
    return taken.length;
  }

  private piece(): Piece {
    return {
      number: this.number,
      position: this.position,
      bytes: this.filling.subarray(0, this.filled),
    };
  }

  /** Begins to send the full piece, once the one before it has arrived. */
  private async sendFilled(): Promise<void> {
    await this.arrival();
    if (this.number >= STORE_PIECES_MAX)
      throw new Error(
        `${this.path} has more than ${STORE_PIECES_MAX} pieces of ${this.sink.pieceBytes} bytes`,
      );
    const piece = this.piece();
    const arrived = this.sink.send(piece);
    // `arrival` throws the error.
    arrived.catch(() => {});
    this.sending = { piece, arrived };
    this.number++;
    this.position += this.filled;
    const full = this.filling;
    this.filling = this.spare ?? Buffer.alloc(0);
    this.spare = full;
    this.filled = 0;
  }

  /** Waits until the piece that is being sent has arrived. Sends it again if it failed before. */
  private async arrival(): Promise<void> {
    const { sending } = this;
    if (sending === undefined) return;
    sending.arrived ??= this.sink.send(sending.piece);
    try {
      await sending.arrived;
    } catch (error) {
      sending.arrived = undefined;
      throw error;
    }
    this.sending = undefined;
  }
}
