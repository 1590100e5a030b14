/**
 * One connection to one worker, over a Unix socket, TCP or TLS. It owns long bodies and the joining of writes: one per
 * event-loop turn, or one per FLUSH_FRAMES. Its owner interprets the messages.
 */
import type { Socket } from "node:net";
import { contain } from "../base/boundary.ts";
import { FRAME_BODY_BYTES_MAX, READ_AT_ONCE_BYTES_MAX } from "../contracts/limits/frames.ts";
import { connectSocket, isSecure, type WorkerAddress } from "./connect-socket.ts";
import { FrameInbox } from "./frame-inbox.ts";
import { asProtocolError, checkFrame, checkLong, ProtocolError } from "./frame-rules.ts";
import { FrameReader, FrameWriter } from "./frames.ts";
import { shakeHands } from "./handshake.ts";
import { LongBodyReceiver, LongBodySender } from "./long-bodies.ts";
import {
  encodeByteCount,
  encodeJson,
  type Hello,
  MESSAGE,
  PROTOCOL_VERSION,
  type Welcome,
} from "./messages.ts";

/** With this many frames a write goes out before the end of the turn, so that the worker can start meanwhile. */
const FLUSH_FRAMES = 32;

const NO_BYTES = Buffer.alloc(0);

export interface WorkerConnectionEvents {
  /** Whether the worker may begin a body of several frames. A request counts until its reply, also a cancelled one. */
  expects(type: number, id: number): boolean;
  /**
   * The owner may keep `body`: a response may wait for an earlier one on its way to the client. Two kinds must be read
   * before this returns, because their memory is used again: an OUTPUT, as nothing else is so long and so frequent, and
   * a RESULT of up to READ_AT_ONCE_BYTES_MAX, of which most predictions have one.
   */
  onMessage(type: number, id: number, body: Buffer): void;
  /** Called instead for a CHUNK of several frames: these, not joined. */
  onLongChunk?(id: number, frames: readonly Buffer[]): void;
  /**
   * Called once, also after `close()`. `broken` names the rule of the protocol that the worker, or this side, broke.
   */
  onClose(broken: ProtocolError | undefined): void;
}

export class WorkerConnection {
  readonly welcome: Welcome;
  private readonly socket: Socket;
  private readonly writer = new FrameWriter();
  private readonly sender: LongBodySender;
  private readonly receiver: LongBodyReceiver;
  private broken: ProtocolError | undefined;
  private flushScheduled = false;
  private unflushed = 0;

  private constructor(socket: Socket, welcome: Welcome, events: WorkerConnectionEvents) {
    this.socket = socket;
    this.welcome = welcome;
    this.sender = new LongBodySender((type, flags, id, body) => this.writer.frame(type, flags, id, body));
    this.receiver = new LongBodyReceiver({
      expects: (type, id) => events.expects(type, id),
      grant: (id, bytes) => this.send(MESSAGE.WINDOW, id, encodeByteCount(bytes)),
    });
  }

  /** Connects and shakes hands. Rejects if nobody listens, the worker refuses us, or `timeoutMs` pass. */
  static async open(
    address: WorkerAddress,
    hello: Omit<Hello, "protocol">,
    events: WorkerConnectionEvents,
    timeoutMs?: number,
  ): Promise<WorkerConnection> {
    const frames = new FrameInbox((error) => socket.destroy(asProtocolError(error)));
    const reader = new FrameReader((type, flags, id, body) => frames.take(type, flags, id, body));
    const socket: Socket = connectSocket(address, reader);
    try {
      // HELLO has the token, so that the worker's certificate is checked first.
      if ("tls" in address) await isSecure(socket, timeoutMs);
      const welcome = await shakeHands(socket, frames, { protocol: PROTOCOL_VERSION, ...hello }, timeoutMs);
      const connection = new WorkerConnection(socket, welcome, events);
      connection.listen(events, frames);
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  send(type: number, id: number, body: Buffer): void {
    if (body.length <= FRAME_BODY_BYTES_MAX) this.writer.frame(type, 0, id, body);
    else this.sendLong(type, id, [body], body.length);
    this.scheduleFlush();
  }

  /** Sends a short text in Latin-1 together with the message that follows: it is no reason for another write. */
  sendTextBefore(type: number, id: number, text: string): void {
    this.writer.frameOfText(type, id, text);
  }

  /** Sends a body in the parts that it came in, without joining them. */
  sendParts(type: number, id: number, parts: readonly Buffer[]): void {
    if (parts.length === 1) return this.send(type, id, parts[0]!);
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (bytes === 0) return this.send(type, id, NO_BYTES);
    if (bytes <= FRAME_BODY_BYTES_MAX) this.writer.frameOfParts(type, id, parts, bytes);
    else this.sendLong(type, id, parts, bytes);
    this.scheduleFlush();
  }

  sendJson(type: number, id: number, value: unknown): void {
    this.send(type, id, encodeJson(value));
  }

  /** Whether part of the long body `id` is not sent yet: the worker cannot have started with it. */
  isSending(id: number): boolean {
    return this.sender.isSending(id);
  }

  /** Ends the connection; the owner gets the reason through `onClose`. */
  breakOff(why: ProtocolError): void {
    this.broken ??= why;
    this.socket.destroy();
  }

  /** Nobody waits for `id` any more. */
  cancel(id: number): void {
    this.sender.abandon(id);
    this.receiver.abandon(id);
    this.send(MESSAGE.CANCEL, id, Buffer.alloc(0));
  }

  close(): void {
    this.socket.destroy();
  }

  /** Closes without an `onClose` for the owner: the worker continues without us. */
  detach(): void {
    this.socket.removeAllListeners("close");
    this.socket.destroy();
  }

  private listen(events: WorkerConnectionEvents, frames: FrameInbox): void {
    frames.open((type, flags, id, body) => {
      if (this.broken !== undefined) return;
      checkFrame(type, flags, id, body.length);
      if (type === MESSAGE.WINDOW) {
        this.sender.grant(id, body.readUInt32LE(0));
        this.scheduleFlush();
        return;
      }
      const whole = this.receiver.take(type, flags, id, body);
      if (whole === body) events.onMessage(type, id, isReadAtOnce(type, body) ? body : Buffer.from(body));
      else if (whole !== undefined) onLong(events, type, id, whole as readonly Buffer[]);
    });
    this.socket.on("error", (error) => {
      if (error instanceof ProtocolError) this.broken ??= error;
    });
    this.socket.on("close", () => contain("the end of a connection", () => events.onClose(this.broken)));
  }

  private sendLong(type: number, id: number, parts: readonly Buffer[], bytes: number): void {
    try {
      checkLong(type, bytes);
      this.sender.send(type, id, parts);
    } catch (error) {
      this.breakOff(asProtocolError(error));
    }
  }

  private scheduleFlush(): void {
    if (++this.unflushed === FLUSH_FRAMES) this.flush();
    if (this.flushScheduled) return;
    this.flushScheduled = true;
    setImmediate(() => {
      this.flushScheduled = false;
      try {
        this.flush();
      } catch (error) {
        this.breakOff(asProtocolError(error));
      }
    });
  }

  private flush(): void {
    this.unflushed = 0;
    if (this.writer.isEmpty || this.socket.destroyed) return;
    const chunks = this.writer.take();
    if (chunks.length === 1) {
      this.socket.write(chunks[0]!);
      return;
    }
    this.socket.cork();
    for (const chunk of chunks) this.socket.write(chunk);
    this.socket.uncork();
  }
}

/** Whether the owner reads the message before it returns: see `onMessage`. */
function isReadAtOnce(type: number, body: Buffer): boolean {
  return type === MESSAGE.OUTPUT || (type === MESSAGE.RESULT && body.length <= READ_AT_ONCE_BYTES_MAX);
}

/** Workers send only CHUNKs of more than some frames; of a RESULT that long they make a stream. */
function onLong(events: WorkerConnectionEvents, type: number, id: number, frames: readonly Buffer[]): void {
  if (type === MESSAGE.CHUNK && events.onLongChunk !== undefined) events.onLongChunk(id, frames);
  else events.onMessage(type, id, Buffer.concat(frames));
}
