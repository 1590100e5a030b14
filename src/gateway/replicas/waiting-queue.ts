/** The requests of one API that wait for a replica, first come, first served. */
import type { PredictionRequest } from "../answers/prediction-request.ts";

/** The front is cut off when at least this many requests, and half of all, have left it. */
const COMPACT_AFTER = 1024;

export class WaitingQueue {
  private requests: PredictionRequest[] = [];
  private head = 0;

  get size(): number {
    return this.requests.length - this.head;
  }

  /** The request that waits the longest. */
  get first(): PredictionRequest | undefined {
    // A read past the end of an array is slow.
    return this.head < this.requests.length ? this.requests[this.head] : undefined;
  }

  push(prediction: PredictionRequest): void {
    this.requests.push(prediction);
  }

  /** Removes the first. */
  shift(): void {
    this.head++;
    if (this.head < this.requests.length) return;
    this.requests.length = 0;
    this.head = 0;
  }

  /** Drops requests that have left from the front of the list. */
  compact(): void {
    if (this.head < COMPACT_AFTER || this.head * 2 < this.requests.length) return;
    this.requests = this.requests.slice(this.head);
    this.head = 0;
  }

  /** Puts requests before all others. */
  putBack(predictions: readonly PredictionRequest[]): void {
    this.requests = [...predictions, ...this.requests.slice(this.head)];
    this.head = 0;
  }

  list(): PredictionRequest[] {
    return this.requests.slice(this.head);
  }
}
