/** Turns of the event loop: long work leaves some of them to others. */
import { contain } from "../boundary.ts";

/**
 * Cuts long work into slices, so that other work gets the event loop between them. Works that share these slices share
 * the first one of each turn of the event loop. The works that rest then get one more in each turn, in the order in which
 * they came.
 */
export class TimeSlices {
  private readonly lengthMs: number;
  private readonly turns = new OneEachTurn();
  private hasBegun = false;
  private endMs = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
  }

  /** Whether `rest` should be awaited now. */
  get isOver(): boolean {
    if (!this.hasBegun) this.begin();
    return performance.now() >= this.endMs;
  }

  async rest(): Promise<void> {
    await this.turns.turn();
    this.begin();
  }

  private begin(): void {
    this.endMs = performance.now() + this.lengthMs;
    if (this.hasBegun) return;
    this.hasBegun = true;
    setImmediate(() => {
      this.hasBegun = false;
    });
  }
}

/** Lets one caller continue in each turn of the event loop, in the order in which they came. */
export class OneEachTurn {
  private last: Promise<void> = Promise.resolve();

  turn(): Promise<void> {
    this.last = this.last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.last;
  }
}

/** Calls its argument in the next turn of the event loop. */
export type NextTurn = (next: () => void) => void;

/**
 * Does many small pieces of work a few in each turn of the event loop, in order. What came together is often due
 * together: closing 10,000 connections in one turn would keep everybody else waiting for half a second.
 */
export class FewEachTurn {
  private readonly what: string;
  private readonly most: number;
  private readonly nextTurn: NextTurn;
  private work: (() => void)[] = [];

  /** `what`: the name of a piece, for the log. `most`: pieces in one turn. */
  constructor(what: string, most: number, nextTurn: NextTurn = setImmediate) {
    this.what = what;
    this.most = most;
    this.nextTurn = nextTurn;
  }

  add(piece: () => void): void {
    this.work.push(piece);
    if (this.work.length === 1) this.nextTurn(() => this.doSome());
  }

  private doSome(): void {
    const some = this.work.splice(0, this.most);
    if (this.work.length > 0) this.nextTurn(() => this.doSome());
    for (const piece of some) contain(this.what, piece);
  }
}
