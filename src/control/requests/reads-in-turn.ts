/**
 * Long reads: of all APIs, of an application, of jobs. Each takes milliseconds of the event loop, more with each thing
 * that it shows. One is made at a time, and each sender in turn is next. So whoever sends many keeps others waiting for
 * one of them at most.
 */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { READS_WAITING_OF_A_SENDER_MAX } from "../../contracts/limits/requests.ts";
import { senderOf } from "./authorization.ts";
import { clientLeft } from "./connection.ts";

/** After each, others have the event loop for as long as it took; waiting for the database is no work. */
const REST_MAX_MS = 100;

export class ReadsInTurn {
  private readonly keys: Keys;
  private readonly turns = new FairTurns(READS_WAITING_OF_A_SENDER_MAX);

  constructor(keys: Keys) {
    this.keys = keys;
  }

  /**
   * The response that `read` makes in its turn. If it is long, it is streamed after the turn: such responses have limits
   * of their own (answers/open-streams.ts). Throws `rate_limited` if too many of the sender wait. `mostMs`: a read that
   * waits for a store goes on without its turn after this.
   */
  async take(
    c: Context,
    read: () => Promise<Response>,
    mostMs = Number.POSITIVE_INFINITY,
  ): Promise<Response> {
    const turn = await this.turns.take(senderOf(c, this.keys), clientLeft(c));
    if (turn === "full") throw tooManyWait();
    // Nobody reads the response.
    if (turn === "left") return new Response();
    const end = this.endOnce();
    const late = mostMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(end, mostMs);
    try {
      return await read();
    } finally {
      clearTimeout(late);
      end();
    }
  }

  /** Ends the turn that has just begun: others come after a rest. */
  private endOnce(): () => void {
    const startMs = performance.now();
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      const restMs = Math.min(REST_MAX_MS, performance.now() - startMs);
      setTimeout(() => this.turns.end(), restMs).unref();
    };
  }
}

function tooManyWait(): ServiceError {
  const message = `${READS_WAITING_OF_A_SENDER_MAX} lists that this key or address asked for wait already; wait for their responses first`;
  return new ServiceError("rate_limited", message, { retryAfterS: 1 });
}
