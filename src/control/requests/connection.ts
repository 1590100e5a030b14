/** The connection of a request. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** Calls `act` once the connection is closed or the response is finished; at once if that has happened. */
export function whenClosed(c: Context, act: () => void): void {
  const { outgoing } = c.env as HttpBindings;
  if (outgoing.destroyed) act();
  else outgoing.once("close", act);
}

/** Aborted when the client disconnects, and when the response is finished. */
export function clientLeft(c: Context): AbortSignal {
  const left = new AbortController();
  whenClosed(c, () => left.abort());
  return left.signal;
}

/** Tells a client that waits for permission to send its body. */
export function askForBody(c: Context): void {
  if (c.req.header("expect") !== undefined) (c.env as HttpBindings).outgoing.writeContinue();
}
