/**
 * One caller at a time has its turn. The others wait: each sender in turn is next, however many callers another one
 * has. Pure.
 */
import { FairQueue } from "./fair-queue.ts";

/** `full`: too many callers of this sender wait. `left`: the caller left before its turn. */
export type Turn = "taken" | "full" | "left";

export class FairTurns {
  private readonly waiting: FairQueue<() => void>;
  private isTaken = false;

  constructor(mostOfSender: number) {
    this.waiting = new FairQueue(mostOfSender);
  }

  /** Whether the next caller need not wait. */
  get isFree(): boolean {
    return !this.isTaken;
  }

  /** Whoever gets `taken` must call `end` once. `left`: aborted when nobody needs the turn any more. */
  take(sender: string, left?: AbortSignal): Promise<Turn> {
    if (left?.aborted) return Promise.resolve("left");
    return new Promise((resolve) => {
      const begin = () => {
        left?.removeEventListener("abort", leave);
        resolve("taken");
      };
      const leave = () => {
        this.waiting.remove(sender, begin);
        resolve("left");
      };
      if (!this.waiting.push(sender, begin)) return resolve("full");
      left?.addEventListener("abort", leave, { once: true });
      if (!this.isTaken) this.end();
    });
  }

  /** Somebody waits for the end of the current turn. */
  get isWaitedFor(): boolean {
    return !this.waiting.isEmpty;
  }

  /** In a turn: passes it on. Resolves when the caller has the next one of its sender; call `end` in between. */
  again(sender: string): Promise<void> {
    return new Promise((resolve) => this.waiting.putBack(sender, resolve));
  }

  /** Ends the current turn, and begins the next one. */
  end(): void {
    const begin = this.waiting.shift();
    this.isTaken = begin !== undefined;
    begin?.();
  }
}
