/** Requests in the order of their deadlines, which is the order in which they came: all of an API have the same time. */
import type { Prediction } from "./prediction.ts";

/** The front is compacted once this many have gone. */
const COMPACT_AFTER = 1024;

export class Deadlines {
  private entries: { prediction: Prediction; atMs: number }[] = [];
  private head = 0;

  add(prediction: Prediction, atMs: number): void {
    this.entries.push({ prediction, atMs });
  }

  /** Calls back with each request that is past its time and not done with; forgets those. */
  expire(
    nowMs: number,
    isDone: (prediction: Prediction) => boolean,
    onExpired: (prediction: Prediction) => void,
  ): void {
    while (this.head < this.entries.length) {
      const { prediction, atMs } = this.entries[this.head]!;
      if (!isDone(prediction)) {
        if (atMs > nowMs) break;
        onExpired(prediction);
      }
      this.head++;
    }
    if (this.head <= COMPACT_AFTER) return;
    this.entries = this.entries.slice(this.head);
    this.head = 0;
  }

  /** All of them, in order; none is left. */
  take(): Prediction[] {
    const taken = this.entries.slice(this.head).map(({ prediction }) => prediction);
    this.entries = [];
    this.head = 0;
    return taken;
  }

  get size(): number {
    return this.entries.length - this.head;
  }
}
