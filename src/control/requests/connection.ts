/** The connection of a request. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** Calls `act` once the connection is closed or the response is finished; at once if that has happened. */
export function whenClosed(c: Context, act: () => void): void {
  const { outgoing } = c.env as HttpBindings;
  if (outgoing.destroyed) act();
  else outgoing.once("close", act);
}

const signals = new WeakMap<object, AbortSignal>();

/** Aborted when the client disconnects, and when the response is finished. One for each request. */
export function clientLeft(c: Context): AbortSignal {
  const { outgoing } = c.env as HttpBindings;
  const known = signals.get(outgoing);
  if (known !== undefined) return known;
  const left = new AbortController();
  signals.set(outgoing, left.signal);
  whenClosed(c, () => left.abort());
  return left.signal;
}

/** Tells a client that waits for permission to send its body. */
export function askForBody(c: Context): void {
  if (c.req.header("expect") !== undefined) (c.env as HttpBindings).outgoing.writeContinue();
}

/** Whether the client closed its connection before its request was complete. */
export function hasLeft(c: Context): boolean {
  const { incoming } = c.env as HttpBindings;
  return incoming.destroyed && !incoming.complete;
}
