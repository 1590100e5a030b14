/**
 * Bounds how long callers without a key can hold the event loop. Everything that arrives together is handled in one
 * turn of it, before any timer: 1,000 connections with 19 pipelined requests each took two seconds. So a turn answers
 * a number of them, and the others wait for later turns, by address. Those that were pipelined do not wait: their
 * connection is closed. Callers who may make their request never wait here.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { FairQueue } from "../../access/fair-queue.ts";
import { contain } from "../../base/boundary.ts";
import { CONNECTIONS_MAX, STRANGERS_OF_A_TURN_MAX } from "../../contracts/limits/requests.ts";
import { LineFlood } from "../../observe/line-flood.ts";
import { say } from "../../observe/words.ts";
import { parseNoMore } from "./asked-at-once.ts";

interface Waiting {
  socket: Socket;
  answer: () => void;
}

export class StrangersTurn {
  private readonly nextTurn: (begin: () => void) => void;
  /** At most two of each connection: a request, and its end. */
  private readonly waiting = new FairQueue<Waiting>(2 * CONNECTIONS_MAX);
  private readonly closing = new WeakSet<Socket>();
  private readonly closed = new LineFlood<string>((from, more) => say(closedText(from, more)));
  private answered = 0;

  constructor(nextTurn: (begin: () => void) => void = setImmediate) {
    this.nextTurn = nextTurn;
  }

  /** Whether this turn has answered enough. */
  get isSpent(): boolean {
    return this.answered >= STRANGERS_OF_A_TURN_MAX;
  }

  /** A request was answered at once or forwarded, or its token must be verified. */
  count(): void {
    if (this.answered++ === 0) this.nextTurn(() => this.begin());
  }

  /** Answers a request in a later turn. If it came ahead of another's response, its connection is closed instead. */
  postpone({ socket }: IncomingMessage, response: ServerResponse, answer: () => void): void {
    const sender = socket.remoteAddress ?? "";
    // Node gives a response its socket when the responses before it are complete.
    const isAhead = response.socket === null;
    if (!isAhead && this.waiting.push(sender, { socket, answer })) return;
    this.closed.record("closed", sender);
    // Closing takes as long as an answer, so it waits too.
    parseNoMore(socket);
    this.closing.add(socket);
    if (!this.waiting.push(sender, { socket, answer: () => {} })) socket.destroy();
  }

  private begin(): void {
    this.answered = 0;
    while (!this.isSpent) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      if (next.socket.destroyed) continue;
      this.count();
      if (this.closing.has(next.socket)) next.socket.destroy();
      else contain("a request that waited", next.answer, () => next.socket.destroy());
    }
  }
}

function closedText(from: string, more: number): string {
  const others = more === 0 ? "" : `, and ${more} more connections`;
  return `quern: closed a connection of ${from}${others}: without a key, it sent more requests at once than are handled`;
}
