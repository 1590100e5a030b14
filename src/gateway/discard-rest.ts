/**
 * After an answer that came before the body's end. Closing at once would reset the connection and lose the answer on
 * its way, so what the client still sends is read and dropped; whoever goes on for LINGER_MS is cut off.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

const LINGER_MS = 5_000;

/** Whoever waited in vain for leave to send does not know whether its next bytes are that body, or its next request. */
export function closeUnasked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect === undefined || response.headersSent) return;
  response.setHeader("connection", "close");
}

export function discardRest(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
  // An iterator that was left in the middle: while it listens, nothing flows. To end it would close the connection.
  request.removeAllListeners("readable");
  request.resume();
}
