/**
 * Frames: `u32 length | u8 type | u8 flags | u16 0 | u32 id | body`, little endian; `length` counts the body only
 * (docs/worker-protocol.md). This file handles only the bytes: no socket, no meaning.
 */
import { FRAME_BODY_BYTES_MAX, FRAMES_A_TURN } from "../contracts/limits/frames.ts";

const FRAME_HEADER_BYTES = 12;
/** More frames of the same type and id follow; together they are one body. */
export const FLAG_MORE = 1;

const COPY_BELOW_BYTES = 16 * 1024;
const SLAB_BYTES = 64 * 1024;

/** Called for each complete frame. `body` is a view that is valid only during the call. */
export type OnFrame = (type: number, flags: number, id: number, body: Buffer) => void;

/** Space for the longest frame after an unfinished one. */
const READ_BYTES = 2 * (FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX);
/** Read at once while frames are small: a few times FRAMES_A_TURN of them. */
const SMALL_READ_BYTES = 64 * 1024;

/**
 * Cuts a byte stream into frames. The reader owns the memory, so that no read allocates any: the caller gets `space`,
 * and reports how much of it was `filled`.
 */
export class FrameReader {
  private readonly buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  private start = 0;
  private end = 0;
  private readBytes = READ_BYTES;
  private readonly onFrame: OnFrame;

  constructor(onFrame: OnFrame) {
    this.onFrame = onFrame;
  }

  /** The memory for the next bytes; never empty. */
  space(): Buffer {
    if (this.start === this.end) this.start = this.end = 0;
    else if (this.start > 0 && READ_BYTES - this.end < READ_BYTES / 2) {
      this.buffer.copyWithin(0, this.start, this.end);
      this.end -= this.start;
      this.start = 0;
    }
    return this.buffer.subarray(this.end, this.end + this.readBytes);
  }

  /**
   * Returns whether there were so many frames that other work should run now. Throws if the bytes are not a frame: the
   * stream is then useless.
   */
  filled(bytes: number): boolean {
    const { buffer } = this;
    let frames = 0;
    this.end += bytes;
    while (this.end - this.start >= FRAME_HEADER_BYTES) {
      const at = this.start;
      const length = buffer.readUInt32LE(at);
      if (length > FRAME_BODY_BYTES_MAX)
        throw new Error(`frame of ${length} bytes is over the limit of ${FRAME_BODY_BYTES_MAX}`);
      const reserved = buffer.readUInt16LE(at + 6);
      if (reserved !== 0) throw new Error(`the reserved field of a frame is ${reserved}, not 0`);
      const end = at + FRAME_HEADER_BYTES + length;
      if (end > this.end) break;
      this.start = end;
      frames++;
      this.onFrame(
        buffer[at + 4]!,
        buffer[at + 5]!,
        buffer.readUInt32LE(at + 8),
        buffer.subarray(at + FRAME_HEADER_BYTES, end),
      );
    }
    const areMany = frames >= FRAMES_A_TURN;
    this.readBytes = areMany ? SMALL_READ_BYTES : READ_BYTES;
    return areMany;
  }
}

/** Collects the frames of one event-loop turn into one write. Small bodies are copied, large ones are not. */
export class FrameWriter {
  private chunks: Buffer[] = [];
  private slab = Buffer.allocUnsafe(SLAB_BYTES);
  private slabStart = 0;
  private slabEnd = 0;

  get isEmpty(): boolean {
    return this.chunks.length === 0 && this.slabStart === this.slabEnd;
  }

  frame(type: number, flags: number, id: number, body: Buffer): void {
    this.head(type, flags, id, body.length);
    this.body(body);
  }

  /** One frame whose body is a short text in Latin-1. It needs no buffer of its own. */
  frameOfText(type: number, id: number, text: string): void {
    this.head(type, 0, id, text.length);
    this.slabEnd += this.slab.write(text, this.slabEnd, "latin1");
  }

  /** One frame whose body consists of several parts. The parts are not joined by a copy. */
  frameOfParts(type: number, id: number, parts: readonly Buffer[], length: number): void {
    const [first, ...more] = parts as [Buffer, ...Buffer[]];
    this.head(type, 0, id, length);
    this.body(first);
    for (const part of more) this.body(part);
  }

  /** Takes everything collected so far, to be written in this order. */
  take(): Buffer[] {
    this.closeRun();
    const chunks = this.chunks;
    this.chunks = [];
    return chunks;
  }

  private head(type: number, flags: number, id: number, length: number): void {
    if (this.slabEnd + FRAME_HEADER_BYTES + COPY_BELOW_BYTES > SLAB_BYTES) this.newSlab();
    const slab = this.slab;
    const at = this.slabEnd;
    slab.writeUInt32LE(length, at);
    slab[at + 4] = type;
    slab[at + 5] = flags;
    slab[at + 6] = 0;
    slab[at + 7] = 0;
    slab.writeUInt32LE(id, at + 8);
    this.slabEnd = at + FRAME_HEADER_BYTES;
  }

  /** Follows a head, for which the slab was given space for a small body too. */
  private body(body: Buffer): void {
    if (body.length <= COPY_BELOW_BYTES && this.slabEnd + body.length <= SLAB_BYTES) {
      this.slabEnd += body.copy(this.slab, this.slabEnd);
    } else {
      this.closeRun();
      this.chunks.push(body);
    }
  }

  private closeRun(): void {
    if (this.slabEnd > this.slabStart) this.chunks.push(this.slab.subarray(this.slabStart, this.slabEnd));
    this.slabStart = this.slabEnd;
  }

  private newSlab(): void {
    this.closeRun();
    this.slab = Buffer.allocUnsafe(SLAB_BYTES);
    this.slabStart = 0;
    this.slabEnd = 0;
  }
}
