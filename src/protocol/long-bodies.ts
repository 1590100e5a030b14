/**
 * Bodies longer than one frame: cut on the way out, with at most a window's worth under way until the receiver
 * grants more; put together on the way in. A long body never blocks the frames of its neighbours.
 */
import { FRAME_BODY_BYTES_MAX, MESSAGE_BYTES_MAX, STREAM_WINDOW_BYTES } from "../contracts/limits.ts";
import { FLAG_MORE, type OnFrame } from "./frames.ts";

interface Sending {
  type: number;
  id: number;
  body: Buffer;
  sent: number;
  credit: number;
}

export class LongBodySender {
  private readonly sending = new Map<number, Sending>();
  private readonly emit: OnFrame;

  constructor(emit: OnFrame) {
    this.emit = emit;
  }

  send(type: number, id: number, body: Buffer): void {
    const stream = { type, id, body, sent: 0, credit: STREAM_WINDOW_BYTES };
    this.sending.set(id, stream);
    this.advance(stream);
  }

  /** The receiver has room for `bytes` more of the body `id`. Grants for bodies that are through are ignored. */
  grant(id: number, bytes: number): void {
    const stream = this.sending.get(id);
    if (stream === undefined) return;
    stream.credit += bytes;
    this.advance(stream);
  }

  /** Forgets a body that nobody waits for any more; false when its last frame has gone already. */
  abandon(id: number): boolean {
    return this.sending.delete(id);
  }

  private advance(stream: Sending): void {
    while (stream.sent < stream.body.length && stream.credit > 0) {
      const end = Math.min(stream.body.length, stream.sent + Math.min(FRAME_BODY_BYTES_MAX, stream.credit));
      const flags = end < stream.body.length ? FLAG_MORE : 0;
      this.emit(stream.type, flags, stream.id, stream.body.subarray(stream.sent, end));
      stream.credit -= end - stream.sent;
      stream.sent = end;
    }
    if (stream.sent === stream.body.length) this.sending.delete(stream.id);
  }
}

export class LongBodyReceiver {
  private readonly parts = new Map<number, Buffer[]>();

  /**
   * Takes one frame. Returns the whole body when it was the last, else undefined; the caller then grants the bytes
   * back. A body of one frame is returned as the view it came as.
   */
  take(flags: number, id: number, body: Buffer): Buffer | undefined {
    const parts = this.parts.get(id);
    if ((flags & FLAG_MORE) === 0) {
      if (parts === undefined) return body;
      this.parts.delete(id);
      return Buffer.concat([...parts, body]);
    }
    if (parts === undefined) this.parts.set(id, [Buffer.from(body)]);
    else if (parts.length * FRAME_BODY_BYTES_MAX > MESSAGE_BYTES_MAX)
      throw new Error(`body of message ${id} is over ${MESSAGE_BYTES_MAX} bytes`);
    else parts.push(Buffer.from(body));
    return undefined;
  }
}
