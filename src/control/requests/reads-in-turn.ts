/**
 * Long reads: of all APIs, of an application, of jobs. Each takes milliseconds of the event loop, more with each thing
 * that it shows. One is made at a time, and each sender in turn is next. A read that takes longer than a slice passes
 * its turn on, if somebody waits. So whoever sends many keeps others waiting for one slice at most.
 */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import { READS_WAITING_OF_A_SENDER_MAX } from "../../contracts/limits/requests.ts";
import { senderOf } from "./authorization.ts";
import { clientLeft } from "./connection.ts";

/** After each, others have the event loop for as long as it took; waiting for the database is no work. */
const REST_MAX_MS = 100;
/** For reads that may wait for an object store: they keep the turn for so long at most. */
export const STORE_TURN_MAX_MS = 100;

/** What a read awaits after each piece of work: it may have to wait for its next turn. */
export type Pass = () => Promise<void>;

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
    read: (pass: Pass) => Promise<Response>,
    mostMs = Number.POSITIVE_INFINITY,
  ): Promise<Response> {
    const sender = senderOf(c, this.keys);
    const turn = await this.turns.take(sender, clientLeft(c));
    if (turn === "full") throw tooManyWait();
    // Nobody reads the response.
    if (turn === "left") return new Response();
    const own = new OneTurn(this.turns, sender, mostMs);
    try {
      return await read(() => own.pass());
    } finally {
      own.end();
    }
  }
}

/** The turn of one read, which has just begun. */
class OneTurn {
  private readonly turns: FairTurns;
  private readonly sender: string;
  private readonly mostMs: number;
  private startMs = 0;
  private hasEnded = true;
  private late: NodeJS.Timeout | undefined;

  constructor(turns: FairTurns, sender: string, mostMs: number) {
    this.turns = turns;
    this.sender = sender;
    this.mostMs = mostMs;
    this.begin();
  }

  async pass(): Promise<void> {
    if (this.hasEnded || !this.turns.isWaitedFor || performance.now() - this.startMs < SLICE_MS) return;
    const again = this.turns.again(this.sender);
    this.end();
    await again;
    this.begin();
  }

  /** Others come after a rest. */
  end(): void {
    clearTimeout(this.late);
    if (this.hasEnded) return;
    this.hasEnded = true;
    const restMs = Math.min(REST_MAX_MS, performance.now() - this.startMs);
    setTimeout(() => this.turns.end(), restMs).unref();
  }

  private begin(): void {
    this.startMs = performance.now();
    this.hasEnded = false;
    if (this.mostMs < Number.POSITIVE_INFINITY) this.late = setTimeout(() => this.end(), this.mostMs);
  }
}

function tooManyWait(): ServiceError {
  const message = `${READS_WAITING_OF_A_SENDER_MAX} lists that this key or address asked for wait already; wait for their responses first`;
  return new ServiceError("rate_limited", message, { retryAfterS: 1 });
}
