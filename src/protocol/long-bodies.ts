/**
 * Bodies longer than one frame. The sender cuts them, and has at most one window in flight until the receiver grants
 * more. The receiver joins them. A long body never blocks the frames of its neighbours.
 */
import {
  FRAME_BODY_BYTES_MAX,
  FRAMES_OF_A_BODY_MAX,
  MESSAGE_BYTES_MAX,
  STREAM_WINDOW_BYTES,
} from "../contracts/limits/frames.ts";
import { ProtocolError } from "./frame-rules.ts";
import { FLAG_MORE, type OnFrame } from "./frames.ts";
import { MESSAGE } from "./messages.ts";

interface Sending {
  type: number;
  id: number;
  parts: readonly Buffer[];
  /** The position at which the next frame begins: the part, and the byte in it. */
  part: number;
  offset: number;
  left: number;
  credit: number;
}

export class LongBodySender {
  private readonly sending = new Map<number, Sending>();
  private readonly emit: OnFrame;

  constructor(emit: OnFrame) {
    this.emit = emit;
  }

  /**
   * Sends a body in the parts that it came in, without joining them. Throws if a body with this id is still being sent.
   */
  send(type: number, id: number, parts: readonly Buffer[]): void {
    if (this.sending.has(id)) throw new ProtocolError(`the body of message ${id} has not left yet`);
    const left = parts.reduce((sum, part) => sum + part.length, 0);
    // Deliveries are numbered in the order of their arrival, so nothing may overtake a LEASE. The amount of leased work
    // has a separate bound.
    const credit = type === MESSAGE.LEASE ? Number.POSITIVE_INFINITY : STREAM_WINDOW_BYTES;
    const stream = { type, id, parts, part: 0, offset: 0, left, credit };
    this.sending.set(id, stream);
    this.advance(stream);
  }

  /** The receiver has space for `bytes` more of the body `id`. Grants for bodies that are already sent are ignored. */
  grant(id: number, bytes: number): void {
    const stream = this.sending.get(id);
    if (stream === undefined) return;
    stream.credit += bytes;
    this.advance(stream);
  }

  /** Whether part of the body `id` is not sent yet. */
  isSending(id: number): boolean {
    return this.sending.has(id);
  }

  /** Forgets a body that nobody waits for any more. False if its last frame is already sent. */
  abandon(id: number): boolean {
    return this.sending.delete(id);
  }

  private advance(stream: Sending): void {
    while (stream.left > 0 && stream.credit > 0) {
      const part = stream.parts[stream.part]!;
      const bytes = Math.min(part.length - stream.offset, FRAME_BODY_BYTES_MAX, stream.credit);
      const frame = part.subarray(stream.offset, stream.offset + bytes);
      stream.offset += bytes;
      stream.left -= bytes;
      stream.credit -= bytes;
      if (stream.offset === part.length) {
        stream.part++;
        stream.offset = 0;
      }
      if (bytes > 0) this.emit(stream.type, stream.left > 0 ? FLAG_MORE : 0, stream.id, frame);
    }
    if (stream.left === 0) this.sending.delete(stream.id);
  }
}

/** The frames of one body so far. */
interface Receiving {
  type: number;
  parts: Buffer[];
  bytes: number;
}

export class LongBodyReceiver {
  private readonly receiving = new Map<number, Receiving>();
  private readonly expects: (type: number, id: number) => boolean;

  /** `expects`: whether a long body of this type and id may begin. Otherwise a worker could fill the memory with them. */
  constructor(expects: (type: number, id: number) => boolean) {
    this.expects = expects;
  }

  /**
   * Takes one frame. Returns the whole body after its last frame, else undefined; the caller then grants the bytes
   * back. A body of one frame is returned as the same view. Only BUSY, the reply to a CANCEL, ends an incomplete body.
   */
  take(type: number, flags: number, id: number, body: Buffer): Buffer | undefined {
    let known = this.receiving.size === 0 ? undefined : this.receiving.get(id);
    if (known !== undefined && known.type !== type) {
      if (type !== MESSAGE.BUSY)
        throw new ProtocolError(`a message of type ${type} arrived inside the body of message ${id}`);
      this.receiving.delete(id);
      known = undefined;
    }
    if ((flags & FLAG_MORE) === 0) {
      if (known === undefined) return body;
      this.receiving.delete(id);
      return Buffer.concat([...known.parts, body]);
    }
    if (known === undefined) {
      if (!this.expects(type, id))
        throw new ProtocolError(
          `a long message of type ${type} came with the id ${id}, for which nobody waits`,
        );
      this.receiving.set(id, { type, parts: [Buffer.from(body)], bytes: body.length });
    } else if (known.bytes + body.length > MESSAGE_BYTES_MAX)
      throw new ProtocolError(`the body of message ${id} is over ${MESSAGE_BYTES_MAX} bytes`);
    else if (known.parts.length >= FRAMES_OF_A_BODY_MAX)
      throw new ProtocolError(`the body of message ${id} has over ${FRAMES_OF_A_BODY_MAX} frames`);
    else {
      known.parts.push(Buffer.from(body));
      known.bytes += body.length;
    }
    return undefined;
  }
}
