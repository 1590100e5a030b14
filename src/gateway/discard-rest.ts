/**
 * After an answer that came before the body's end. Closing at once would reset the connection and lose the answer on
 * its way, so what the client still sends is read and dropped; whoever goes on for LINGER_MS is cut off.
 */
import type { IncomingMessage } from "node:http";

const LINGER_MS = 5_000;

export function discardRest(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
  request.resume();
}
