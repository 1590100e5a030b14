/**
 * Bodies longer than one frame. The sender cuts them, and has at most one window in flight until the receiver grants
 * more. The receiver collects their frames, and bounds what it holds of incomplete ones. A long body never blocks the frames of
 * its neighbours.
 */
import {
  FRAME_BODY_BYTES_MAX,
  FRAMES_OF_A_BODY_MAX,
  INCOMPLETE_BODIES_BYTES,
  MESSAGE_BYTES_MAX,
  RESULT_BYTES_MAX,
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
    const isLease = type === MESSAGE.LEASE || type === MESSAGE.LEASE_PART;
    const credit = isLease ? Number.POSITIVE_INFINITY : STREAM_WINDOW_BYTES;
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
  /** How many bytes of this body the sender was allowed to send so far. */
  granted: number;
  /** Nobody waits for it any more, so only its first frame is kept. */
  isAbandoned: boolean;
}

/** What the receiver asks of its owner. */
interface ReceiverEvents {
  /** Whether a long body of this type and id may begin. Otherwise a worker could fill the memory with them. */
  expects(type: number, id: number): boolean;
  /** Tells the sender that it may send `bytes` more of the body `id`. */
  grant(id: number, bytes: number): void;
}

export class LongBodyReceiver {
  /** In the order in which they began. */
  private readonly receiving = new Map<number, Receiving>();
  private readonly events: ReceiverEvents;
  /** The bytes of these bodies, without the abandoned ones. */
  private held = 0;
  private isHoldingBack = false;

  constructor(events: ReceiverEvents) {
    this.events = events;
  }

  /**
   * Takes one frame, and grants its bytes back as soon as there is space. Returns the frames of the whole body after the
   * last one, else undefined. They are not joined: 512 MiB take 0.4 s. A body of one frame is returned as the same view.
   * Only BUSY, the reply to a CANCEL, ends an incomplete body.
   */
  take(type: number, flags: number, id: number, body: Buffer): Buffer | readonly Buffer[] | undefined {
    let known = this.receiving.size === 0 ? undefined : this.receiving.get(id);
    if (known !== undefined && known.type !== type) {
      if (type !== MESSAGE.BUSY)
        throw new ProtocolError(`a message of type ${type} arrived inside the body of message ${id}`);
      this.end(id, known);
      known = undefined;
    }
    const isLast = (flags & FLAG_MORE) === 0;
    if (known === undefined) {
      if (isLast) return body;
      known = this.begin(type, id);
    }
    add(known, id, body);
    if (!known.isAbandoned) this.held += body.length;
    if (isLast) {
      this.end(id, known);
      return known.parts;
    }
    this.grantIfSpace(id, known);
    return undefined;
  }

  /** Nobody waits for the body `id` any more: it takes no space, and gets no more grants. */
  abandon(id: number): void {
    const known = this.receiving.get(id);
    if (known === undefined || known.isAbandoned) return;
    known.isAbandoned = true;
    known.parts.length = 1;
    this.leave(known);
  }

  private begin(type: number, id: number): Receiving {
    if (!this.events.expects(type, id))
      throw new ProtocolError(
        `a long message of type ${type} came with the id ${id}, for which nobody waits`,
      );
    const body = { type, parts: [], bytes: 0, granted: STREAM_WINDOW_BYTES, isAbandoned: false };
    this.receiving.set(id, body);
    return body;
  }

  private end(id: number, known: Receiving): void {
    this.receiving.delete(id);
    if (!known.isAbandoned) this.leave(known);
  }

  /** The bytes of this body are no longer held, so others may go on. */
  private leave(known: Receiving): void {
    this.held -= known.bytes;
    if (!this.isHoldingBack) return;
    this.isHoldingBack = false;
    for (const [id, body] of this.receiving) this.grantIfSpace(id, body);
  }

  /** The oldest body always gets its grant: it comes to its end, and leaves its space to the others. */
  private grantIfSpace(id: number, body: Receiving): void {
    const bytes = body.bytes + STREAM_WINDOW_BYTES - body.granted;
    if (bytes === 0 || body.isAbandoned) return;
    if (this.held > INCOMPLETE_BODIES_BYTES && body !== this.oldest()) {
      this.isHoldingBack = true;
      return;
    }
    body.granted += bytes;
    this.events.grant(id, bytes);
  }

  private oldest(): Receiving | undefined {
    for (const body of this.receiving.values()) if (!body.isAbandoned) return body;
    return undefined;
  }
}

/** Adds a frame to its body. Throws if the body becomes too large, or larger than was granted. */
function add(known: Receiving, id: number, body: Buffer): void {
  known.bytes += body.length;
  const most = known.type === MESSAGE.RESULT ? RESULT_BYTES_MAX : MESSAGE_BYTES_MAX;
  if (known.bytes > most) throw new ProtocolError(`the body of message ${id} is over ${most} bytes`);
  if (known.bytes > known.granted)
    throw new ProtocolError(`the body of message ${id} has more bytes than the ${known.granted} granted`);
  if (known.parts.length >= FRAMES_OF_A_BODY_MAX)
    throw new ProtocolError(`the body of message ${id} has over ${FRAMES_OF_A_BODY_MAX} frames`);
  if (!known.isAbandoned) known.parts.push(Buffer.from(body));
}
