/**
 * Handles the rest of a body after an early response. Closing at once would reset the connection, and the client would
 * lose the response. So the rest is read and dropped; a client that still sends after LINGER_MS is cut off.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { dropBody } from "../connections/dropped-body.ts";

const LINGER_MS = 5_000;

/**
 * A client that waited for 100 Continue may send its body next, or another request. Nobody can tell which, so the
 * connection is closed.
 */
export function closeUnasked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect === undefined || response.headersSent) return;
  response.setHeader("connection", "close");
}

export function discardRest(request: IncomingMessage): void {
  if (request.complete) return;
  dropBody(request);
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
  // An unfinished iterator still listens, and then nothing flows. Ending the iterator would close the connection.
  request.removeAllListeners("readable");
  request.resume();
}
