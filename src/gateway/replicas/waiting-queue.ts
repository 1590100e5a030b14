/** Requests in the order in which they came. Those that are answered meanwhile are dropped. */
import type { PredictionRequest } from "../answers/prediction-request.ts";

/** The front is cut off when at least this many requests, and half of all, have left it. */
const COMPACT_AFTER = 1024;

export class WaitingQueue {
  private requests: PredictionRequest[] = [];
  private head = 0;

  get size(): number {
    return this.requests.length - this.head;
  }

  /** The request that waits the longest. Drops answered ones before it. */
  get first(): PredictionRequest | undefined {
    // A read past the end of an array is slow.
    while (this.head < this.requests.length) {
      const first = this.requests[this.head]!;
      if (!first.isAnswered) return first;
      this.shift();
    }
    return undefined;
  }

  /** Also drops answered requests from the front: a queue from which nobody takes does not grow without end. */
  push(prediction: PredictionRequest): void {
    if (this.first !== undefined) this.compact();
    this.requests.push(prediction);
  }

  /** Removes and returns the first. */
  take(): PredictionRequest | undefined {
    const { first } = this;
    if (first !== undefined) this.shift();
    return first;
  }

  /** Puts requests before all others. */
  putBack(predictions: readonly PredictionRequest[]): void {
    this.requests = [...predictions, ...this.requests.slice(this.head)];
    this.head = 0;
  }

  list(): PredictionRequest[] {
    return this.requests.slice(this.head);
  }

  private shift(): void {
    this.head++;
    if (this.head === this.requests.length) this.clear();
  }

  private clear(): void {
    this.requests.length = 0;
    this.head = 0;
  }

  private compact(): void {
    if (this.head < COMPACT_AFTER || this.head * 2 < this.requests.length) return;
    this.requests = this.requests.slice(this.head);
    this.head = 0;
  }
}
