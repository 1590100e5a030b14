/**
 * The requests of one API that wait for a replica, first come, first served, as long as a prediction can still end
 * before their deadline. Those for which it is too late would only keep the replica from the others: they get it if
 * nobody else wants it. Without this rule, a little overload leaves no request its answer in time. Pure.
 */
import type { PredictionRequest } from "../answers/prediction-request.ts";
import { WaitingQueue } from "./waiting-queue.ts";

export class WaitingRequests {
  private readonly inTime = new WaitingQueue();
  private readonly late = new WaitingQueue();

  get size(): number {
    return this.inTime.size + this.late.size;
  }

  get isEmpty(): boolean {
    return this.inTime.first === undefined && this.late.first === undefined;
  }

  push(prediction: PredictionRequest): void {
    this.inTime.push(prediction);
  }

  /** Puts requests before all others. */
  putBack(predictions: readonly PredictionRequest[]): void {
    this.inTime.putBack(predictions);
  }

  /** Removes and returns the next request; `endMs` is when its prediction would end. Undefined if none waits. */
  take(endMs: number): PredictionRequest | undefined {
    const { inTime, late } = this;
    for (let next = inTime.take(); next !== undefined; next = inTime.take()) {
      if (next.deadlineMs >= endMs) return next;
      late.push(next);
    }
    return late.take();
  }

  list(): PredictionRequest[] {
    return [...this.late.list(), ...this.inTime.list()];
  }
}
