/**
 * Bounds how long texts that become server-sent events can hold the event loop: one of 20 MB took five seconds. A turn
 * handles a number of bytes for all streams. What is beyond it waits for later turns; the owners of the streams (a key,
 * or an address without one) take turns. One instance per process.
 */

import { contain } from "../../base/boundary.ts";
import { FairQueue } from "../../base/fair/fair-queue.ts";
import { TEXT_OF_A_TURN_BYTES } from "../../contracts/limits/frames.ts";

interface Waiting {
  /** Handles one slice, and returns its length. */
  handle: () => number;
  /** Called if `handle` throws. */
  fail: () => void;
}

export class TextTurn {
  private readonly nextTurn: (begin: () => void) => void;
  /** One of each stream at most. */
  private readonly waiting = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);
  private spent = 0;
  private isNextPlanned = false;

  constructor(nextTurn: (begin: () => void) => void = setImmediate) {
    this.nextTurn = nextTurn;
  }

  /** Whether so many bytes may be handled now. They are counted then. */
  take(bytes: number): boolean {
    if (this.spent + bytes > TEXT_OF_A_TURN_BYTES) return false;
    this.count(bytes);
    return true;
  }

  /** Has a slice handled in a later turn. */
  wait(owner: string, waiting: Waiting): void {
    this.waiting.push(owner, waiting);
    this.planNext();
  }

  private begin(): void {
    this.isNextPlanned = false;
    this.spent = 0;
    while (this.spent < TEXT_OF_A_TURN_BYTES) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      contain("a text of a stream", () => this.count(next.handle()), next.fail);
    }
  }

  private count(bytes: number): void {
    this.spent += bytes;
    this.planNext();
  }

  private planNext(): void {
    if (this.isNextPlanned) return;
    this.isNextPlanned = true;
    this.nextTurn(() => this.begin());
  }
}

export const textTurn = new TextTurn();
