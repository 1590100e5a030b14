/**
 * Frames: `u32 length | u8 type | u8 flags | u16 0 | u32 id | body`, little endian; `length` is the body's only
 * (docs/worker-protocol.md). This file owns the bytes, nothing else: no socket, no meaning.
 */
import { FRAME_BODY_BYTES_MAX } from "../contracts/limits.ts";

const FRAME_HEADER_BYTES = 12;
/** More frames of the same type and id follow; together they are one body. */
export const FLAG_MORE = 1;

const COPY_BELOW_BYTES = 16 * 1024;
const SLAB_BYTES = 64 * 1024;

/** Called for each complete frame. `body` is a view that is valid during the call only. */
export type OnFrame = (type: number, flags: number, id: number, body: Buffer) => void;

/** Room for the longest frame behind what is left of the one before. */
const READ_BYTES = 2 * (FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX);

/**
 * Cuts a byte stream into frames. It owns the memory that is read into, so that no read allocates any: whoever reads asks for
 * `space`, and says how much of it was `filled`.
 */
export class FrameReader {
  private readonly buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  private start = 0;
  private end = 0;
  private readonly onFrame: OnFrame;

  constructor(onFrame: OnFrame) {
    this.onFrame = onFrame;
  }

  /** Where the next bytes go; never empty. */
  space(): Buffer {
    if (this.start === this.end) this.start = this.end = 0;
    else if (this.start > 0 && READ_BYTES - this.end < READ_BYTES / 2) {
      this.buffer.copyWithin(0, this.start, this.end);
      this.end -= this.start;
      this.start = 0;
    }
    return this.end === 0 ? this.buffer : this.buffer.subarray(this.end);
  }

  /** Throws for what is no frame: the stream is then useless. */
  filled(bytes: number): void {
    const { buffer } = this;
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
      this.onFrame(
        buffer[at + 4]!,
        buffer[at + 5]!,
        buffer.readUInt32LE(at + 8),
        buffer.subarray(at + FRAME_HEADER_BYTES, end),
      );
    }
  }
}

/** Collects frames so that all of one event-loop turn leave in one write. Small bodies are copied, large ones are not. */
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

  /** One frame whose body is these parts together, which are not copied together. */
  frameOfParts(type: number, id: number, parts: readonly Buffer[], length: number): void {
    const [first, ...more] = parts as [Buffer, ...Buffer[]];
    this.head(type, 0, id, length);
    this.body(first);
    for (const part of more) this.body(part);
  }

  /** All that was collected, to be written in this order. */
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

  /** Behind a head, for which the slab has room with a small body. */
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
