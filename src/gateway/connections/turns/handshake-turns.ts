/**
 * Bounds the work for TLS handshakes in one turn of the event loop. Each takes a signature, 0.5 to 4 ms, and its later
 * messages take as long if the client chooses so. Node does all this in the callback that reads the connection, and
 * reads all connections that have sent something in one turn. So whatever a client sends before its handshake is over is
 * given to TLS in its turn: by address. One instance per process.
 */
import type { Socket } from "node:net";
import { contain } from "../../../base/boundary.ts";
import { FairQueue } from "../../../base/fair/fair-queue.ts";
import { HANDSHAKES_OF_A_TURN_MAX, HANDSHAKING_OF_A_TURN_MS } from "../../../contracts/limits/requests.ts";
import { type AcceptingTurns, acceptingTurns } from "./accepting-turns.ts";

/** How the turns are called, and what they measure. */
export interface TurnClock {
  /** Calls in the next turn of the event loop. */
  nextTurn: (begin: () => void) => void;
  nowMs: () => number;
}

const NODE_CLOCK: TurnClock = { nextTurn: setImmediate, nowMs: () => performance.now() };

interface Waiting {
  socket: Socket;
  give: () => void;
}

export class HandshakeTurns {
  private readonly clock: TurnClock;
  private readonly accepting: AcceptingTurns;
  private readonly waiting = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);
  private isAwake = false;

  constructor(clock: TurnClock = NODE_CLOCK, accepting = acceptingTurns) {
    this.clock = clock;
    this.accepting = accepting;
  }

  /** `give` gives TLS what the connection has sent. TLS answers it at once. */
  push(owner: string, socket: Socket, give: () => void): void {
    this.waiting.push(owner, { socket, give });
    if (this.isAwake) return;
    this.isAwake = true;
    this.clock.nextTurn(() => this.turn());
  }

  private turn(): void {
    if (this.accepting.areDue()) this.clock.nextTurn(() => this.turn());
    else this.giveSome();
  }

  private giveSome(): void {
    const untilMs = this.clock.nowMs() + HANDSHAKING_OF_A_TURN_MS;
    for (let given = 0; given < HANDSHAKES_OF_A_TURN_MAX; given++) {
      if (given > 0 && this.clock.nowMs() >= untilMs) break;
      const next = this.shift();
      if (next === undefined) {
        this.isAwake = false;
        return;
      }
      contain("a TLS handshake", next.give, () => next.socket.destroy());
    }
    this.clock.nextTurn(() => this.turn());
  }

  /** The next one that is still open. */
  private shift(): Waiting | undefined {
    for (;;) {
      const next = this.waiting.shift();
      if (next === undefined || !next.socket.destroyed) return next;
    }
  }
}

export const handshakeTurns = new HandshakeTurns();
