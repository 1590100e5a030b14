/**
 * Reads of everything that is deployed: each takes milliseconds of the event loop, more with each API. One is answered
 * at a time, and each sender in turn is next. So whoever sends many keeps others waiting for one of them at most.
 */
import type { Context, MiddlewareHandler } from "hono";
import type { Keys } from "../../access/keys.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { READS_WAITING_OF_A_SENDER_MAX } from "../../contracts/limits/requests.ts";
import { senderOf } from "./authorization.ts";
import { clientLeft } from "./connection.ts";

const OF_EVERYTHING = /^\/-\/(apis|applications)(\/[^/]+)?$/;

/** After each, others have the event loop for as long as it took; waiting for the database is no work. */
const REST_MAX_MS = 100;

function restMs(tookMs: number): number {
  return Math.min(REST_MAX_MS, tookMs);
}

/** A long answer is streamed after its turn: it has limits of its own (answers/open-streams.ts). */
export function readsInTurn({ keys }: { keys: Keys }): MiddlewareHandler {
  const turns = new FairTurns(READS_WAITING_OF_A_SENDER_MAX);
  return async (c, next) => {
    if (c.req.method !== "GET" || !OF_EVERYTHING.test(c.req.path)) return next();
    return inTurn(c, next, turns, senderOf(c, keys));
  };
}

async function inTurn(
  c: Context,
  next: () => Promise<void>,
  turns: FairTurns,
  sender: string,
): Promise<Response | undefined> {
  const turn = await turns.take(sender, clientLeft(c));
  if (turn === "full") throw tooManyWait();
  // Nobody reads the response.
  if (turn === "left") return new Response();
  const startMs = performance.now();
  try {
    await next();
    return undefined;
  } finally {
    setTimeout(() => turns.end(), restMs(performance.now() - startMs)).unref();
  }
}

function tooManyWait(): ServiceError {
  const message = `${READS_WAITING_OF_A_SENDER_MAX} requests of this key or address for APIs or applications wait already; wait for their responses first`;
  return new ServiceError("rate_limited", message, { retryAfterS: 1 });
}
