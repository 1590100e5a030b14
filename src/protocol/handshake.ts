/** The handshake on a connection to a worker: HELLO, and WELCOME or REFUSED (docs/worker-protocol.md). */
import type { Socket } from "node:net";
import type { FrameInbox } from "./frame-inbox.ts";
import { asProtocolError, ProtocolError } from "./frame-rules.ts";
import { FrameWriter } from "./frames.ts";
import { isMap } from "./loose-json.ts";
import { encodeJson, type Hello, MESSAGE, type Refusal, type Welcome } from "./messages.ts";
import { isReady } from "./set-up-report.ts";

/** A worker replies only after its predict() returns, so a worker that accepts the connection gets this long. */
export const HANDSHAKE_MS = 600_000;

/** The worker refused the connection, and said why. */
export class ConnectionRefused extends Error {
  readonly code: Refusal["code"];

  constructor({ code, reason }: Refusal) {
    super(`the worker refused the connection: ${reason}`);
    this.code = code;
  }
}

/** Sends HELLO and waits for WELCOME. */
export function shakeHands(
  socket: Socket,
  frames: FrameInbox,
  hello: Hello,
  timeoutMs = HANDSHAKE_MS,
): Promise<Welcome> {
  return new Promise((resolve, reject) => {
    const writer = new FrameWriter();
    writer.frame(MESSAGE.HELLO, 0, 0, encodeJson(hello));
    for (const chunk of writer.take()) socket.write(chunk);
    const timer = setTimeout(
      () => reject(new Error(`the worker did not respond within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const onError = (error: Error) => reject(error);
    const onClose = () => reject(new Error("the worker closed the connection before its WELCOME"));
    frames.first((type, _flags, _id, body) => {
      clearTimeout(timer);
      socket.off("close", onClose).off("error", onError);
      // From here on `close` follows each error, and the owner handles `close`.
      socket.on("error", () => {});
      const text = body.toString();
      try {
        if (type === MESSAGE.WELCOME) resolve(readWelcome(text));
        else reject(new ConnectionRefused(readRefusal(text)));
      } catch (error) {
        reject(asProtocolError(error));
      }
    });
    socket.on("close", onClose).on("error", onError);
    socket.on("close", () => clearTimeout(timer));
  });
}

/** Throws if it is not a WELCOME, because the owner of the connection relies on it. */
function readWelcome(text: string): Welcome {
  const welcome: unknown = JSON.parse(text);
  if (!isMap(welcome) || !Number.isInteger(welcome.connection))
    throw new ProtocolError("the WELCOME does not say which connection this is");
  if (welcome.state === "ready" && !isReady(welcome))
    throw new ProtocolError("the WELCOME does not say what the worker's class needs");
  return welcome as unknown as Welcome;
}

/** Workers that speak an older protocol send no code. Their only reason is the protocol, which they check first. */
function readRefusal(text: string): Refusal {
  const refusal: unknown = JSON.parse(text);
  if (!isMap(refusal) || typeof refusal.reason !== "string")
    throw new ProtocolError("the REFUSED does not say why");
  return { code: "protocol", ...refusal } as unknown as Refusal;
}
