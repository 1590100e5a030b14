/**
 * One connection to one worker, over a Unix socket or TCP. Owns the handshake, the coalescing of writes (one an
 * event-loop turn, or each FLUSH_FRAMES) and long bodies. What messages mean is the business of whoever holds it.
 */
import { createConnection, type Socket } from "node:net";
import { FRAME_BODY_BYTES_MAX } from "../contracts/limits.ts";
import { FLAG_MORE, FrameReader, FrameWriter } from "./frames.ts";
import { LongBodyReceiver, LongBodySender } from "./long-bodies.ts";
import { encodeGrant, encodeJson, type Hello, MESSAGE, PROTOCOL_VERSION, type Welcome } from "./messages.ts";

export type WorkerAddress = { path: string } | { host: string; port: number };

/** A TCP peer that is gone is noticed by keep-alive, which its kernel answers however busy the process is. */
/** A write goes out earlier than at the end of the turn with this many frames, so that the worker starts meanwhile. */
const FLUSH_FRAMES = 32;

const NO_BYTES = Buffer.alloc(0);

const KEEP_ALIVE_FIRST_MS = 5_000;

/** A worker answers when its predict() returns; whoever listens at all is waited for. */
const HANDSHAKE_MS = 600_000;

export interface WorkerConnectionEvents {
  /** `body` may be a view into what was read: copy it to keep it for long. */
  onMessage(type: number, id: number, body: Buffer): void;
  /** Once, also after `close()`. */
  onClose(): void;
}

/** The worker has said that it will not speak with us, and why. */
export class ConnectionRefused extends Error {}

export class WorkerConnection {
  readonly welcome: Welcome;
  private readonly socket: Socket;
  private readonly writer = new FrameWriter();
  private readonly sender: LongBodySender;
  private flushScheduled = false;
  private unflushed = 0;

  private constructor(socket: Socket, welcome: Welcome) {
    this.socket = socket;
    this.welcome = welcome;
    this.sender = new LongBodySender((type, flags, id, body) => this.writer.frame(type, flags, id, body));
  }

  /** Connects and shakes hands. Rejects when nobody listens, the worker refuses us, or `timeoutMs` pass. */
  static async open(
    address: WorkerAddress,
    hello: Omit<Hello, "protocol">,
    events: WorkerConnectionEvents,
    timeoutMs = HANDSHAKE_MS,
  ): Promise<WorkerConnection> {
    const socket = createConnection(address);
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_FIRST_MS);
    try {
      const { welcome, early } = await shakeHands(
        socket,
        { protocol: PROTOCOL_VERSION, ...hello },
        timeoutMs,
      );
      const connection = new WorkerConnection(socket, welcome);
      connection.listen(events, early);
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  send(type: number, id: number, body: Buffer): void {
    if (body.length <= FRAME_BODY_BYTES_MAX) this.writer.frame(type, 0, id, body);
    else this.sender.send(type, id, [body]);
    this.scheduleFlush();
  }

  /** The same with a body in the parts that it came in, which are not copied together. */
  sendParts(type: number, id: number, parts: readonly Buffer[]): void {
    if (parts.length === 1) return this.send(type, id, parts[0]!);
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (bytes === 0) return this.send(type, id, NO_BYTES);
    if (bytes <= FRAME_BODY_BYTES_MAX) this.writer.frameOfParts(type, id, parts, bytes);
    else this.sender.send(type, id, parts);
    this.scheduleFlush();
  }

  sendJson(type: number, id: number, value: unknown): void {
    this.send(type, id, encodeJson(value));
  }

  /** Nobody waits for `id` any more. */
  cancel(id: number): void {
    this.sender.abandon(id);
    this.send(MESSAGE.CANCEL, id, Buffer.alloc(0));
  }

  close(): void {
    this.socket.destroy();
  }

  /** Closes without telling the holder: the worker goes on without us. */
  detach(): void {
    this.socket.removeAllListeners("close");
    this.socket.destroy();
  }

  private listen(events: WorkerConnectionEvents, early: Buffer): void {
    const receiver = new LongBodyReceiver();
    const reader = new FrameReader((type, flags, id, body) => {
      if (type === MESSAGE.WINDOW) {
        this.sender.grant(id, body.readUInt32LE(0));
        this.scheduleFlush();
        return;
      }
      const whole = receiver.take(type, flags, id, body);
      if (whole !== undefined) events.onMessage(type, id, whole);
      else if ((flags & FLAG_MORE) !== 0) this.send(MESSAGE.WINDOW, id, encodeGrant(body.length));
    });
    const push = (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        this.socket.destroy(error as Error);
      }
    };
    this.socket.on("data", push);
    this.socket.on("close", () => events.onClose());
    if (early.length > 0) setImmediate(push, early);
  }

  private scheduleFlush(): void {
    if (++this.unflushed === FLUSH_FRAMES) this.flush();
    if (this.flushScheduled) return;
    this.flushScheduled = true;
    setImmediate(() => {
      this.flushScheduled = false;
      this.flush();
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

/** Sends HELLO and waits for WELCOME. `early` is what came behind it in the same read. */
function shakeHands(
  socket: Socket,
  hello: Hello,
  timeoutMs: number,
): Promise<{ welcome: Welcome; early: Buffer }> {
  return new Promise((resolve, reject) => {
    const writer = new FrameWriter();
    writer.frame(MESSAGE.HELLO, 0, 0, encodeJson(hello));
    for (const chunk of writer.take()) socket.write(chunk);
    let received = Buffer.alloc(0);
    const timer = setTimeout(
      () => reject(new Error(`the worker did not answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const onError = (error: Error) => reject(error);
    const onClose = () => reject(new Error("the worker closed the connection before its WELCOME"));
    const onData = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const length = received.length < 12 ? Number.POSITIVE_INFINITY : received.readUInt32LE(0);
      if (received.length < 12 + length) return;
      clearTimeout(timer);
      socket.off("data", onData).off("close", onClose).off("error", onError);
      // From here on an error is followed by `close`, which is the event that the holder sees.
      socket.on("error", () => {});
      const body = received.toString("utf8", 12, 12 + length);
      if (received[4] === MESSAGE.WELCOME)
        resolve({ welcome: JSON.parse(body) as Welcome, early: received.subarray(12 + length) });
      else reject(new ConnectionRefused(`the worker refused the connection: ${body}`));
    };
    socket.on("data", onData).on("close", onClose).on("error", onError);
    socket.on("close", () => clearTimeout(timer));
  });
}
