/** Requests in the order in which they came. Those that are answered meanwhile are dropped. */
import type { PredictionRequest } from "../answers/prediction-request.ts";

/** No queue of fewer requests is searched for those that have left it. */
const SEARCHED_MIN = 1024;

export class WaitingQueue {
  private requests: PredictionRequest[] = [];
  private head = 0;
  /** The length at which answered requests are dropped, wherever they are. */
  private searchedAt = SEARCHED_MIN;

  /** How many are not answered. Looks at all of them. */
  get size(): number {
    return this.list().length;
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

  /**
   * Also drops answered requests, now and then: clients may leave one after the other while the first request waits, and
   * each would keep what the worker gets besides its body.
   */
  push(prediction: PredictionRequest): void {
    if (this.requests.length >= this.searchedAt) this.replaceBy(this.list());
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
    this.replaceBy([...predictions, ...this.list()]);
  }

  /** Those that are not answered. */
  list(): PredictionRequest[] {
    return this.requests.slice(this.head).filter(({ isAnswered }) => !isAnswered);
  }

  private shift(): void {
    this.head++;
    if (this.head < this.requests.length) return;
    this.requests.length = 0;
    this.head = 0;
  }

  private replaceBy(requests: PredictionRequest[]): void {
    this.requests = requests;
    this.head = 0;
    this.searchedAt = Math.max(SEARCHED_MIN, 2 * requests.length);
  }
}
