/**
 * Bounds how many TLS handshakes one turn of the event loop begins. Each takes a signature, 0.5 to 4 ms of work, in the
 * callback that reads the connection, and Node reads all connections that have sent something in one turn. So each one
 * is given to TLS only when it has sent its whole ClientHello, and then in its turn: by address. One instance per
 * process.
 */
import type { Socket } from "node:net";
import { FairQueue } from "../../access/fair-queue.ts";
import { contain } from "../../base/boundary.ts";
import { HANDSHAKES_OF_A_TURN_MAX, HANDSHAKING_OF_A_TURN_MS } from "../../contracts/limits/requests.ts";
import { addressOwner } from "./owners.ts";

/** How the turns are called, and what they measure. */
export interface TurnClock {
  /** Calls in the next turn of the event loop. */
  nextTurn: (begin: () => void) => void;
  /** Calls in this turn, after what `begin` of a handshake has left for the end of its step. */
  afterStep: (next: () => void) => void;
  nowMs: () => number;
}

const NODE_CLOCK: TurnClock = {
  nextTurn: setImmediate,
  // Node gives TLS what a connection has received in a step of its own.
  afterStep: process.nextTick,
  nowMs: () => performance.now(),
};

interface Waiting {
  socket: Socket;
  begin: () => void;
  onBegun: () => void;
}

export class HandshakeTurns {
  private readonly clock: TurnClock;
  private readonly waiting = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);
  private isAwake = false;

  constructor(clock: TurnClock = NODE_CLOCK) {
    this.clock = clock;
  }

  /** `begin` gives the connection to TLS; `onBegun` is called when TLS has read what was received, and answered it. */
  push(socket: Socket, begin: () => void, onBegun: () => void): void {
    this.waiting.push(addressOwner(socket.remoteAddress), { socket, begin, onBegun });
    if (this.isAwake) return;
    this.isAwake = true;
    this.clock.nextTurn(() => this.turn());
  }

  private turn(): void {
    this.step(0, this.clock.nowMs() + HANDSHAKING_OF_A_TURN_MS);
  }

  private step(begun: number, untilMs: number): void {
    const next = this.shift();
    if (next === undefined) {
      this.isAwake = false;
      return;
    }
    contain("a TLS handshake", next.begin, () => next.socket.destroy());
    this.clock.afterStep(() => {
      contain("a TLS handshake", next.onBegun, () => next.socket.destroy());
      if (begun + 1 < HANDSHAKES_OF_A_TURN_MAX && this.clock.nowMs() < untilMs) this.step(begun + 1, untilMs);
      else this.clock.nextTurn(() => this.turn());
    });
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
