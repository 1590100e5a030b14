/**
 * Requests with their deadlines, in any order. A request may be due before one that was added earlier: its body came
 * slowly, it waited for a first replica, or `predictor.timeout` was changed. Requests that are done are forgotten at
 * once. A request is in one such list at most.
 */
import { EXPIRED_AT_ONCE_MAX } from "../../contracts/limits/predictions.ts";
import type { PredictionRequest } from "../answers/prediction-request.ts";

export class Deadlines {
  private readonly open = new Set<PredictionRequest>();
  /** No request is due before this, so nothing is searched until then. */
  private soonestMs = Number.POSITIVE_INFINITY;

  add(prediction: PredictionRequest, atMs: number): void {
    prediction.deadlineMs = atMs;
    prediction.deadlines?.delete(prediction);
    prediction.deadlines = this;
    this.open.add(prediction);
    if (atMs < this.soonestMs) this.soonestMs = atMs;
  }

  /** Does nothing if the request is not here. */
  delete(prediction: PredictionRequest): void {
    if (prediction.deadlines !== this) return;
    prediction.deadlines = undefined;
    this.open.delete(prediction);
  }

  /** Forgets requests past their deadline, and passes each to `onExpired`: a few at once. The next call does the rest. */
  expire(nowMs: number, onExpired: (prediction: PredictionRequest) => void): void {
    if (nowMs < this.soonestMs) return;
    this.soonestMs = Number.POSITIVE_INFINITY;
    let left = EXPIRED_AT_ONCE_MAX;
    for (const prediction of this.open) {
      if (prediction.deadlineMs <= nowMs && left-- > 0) {
        this.delete(prediction);
        onExpired(prediction);
      } else if (prediction.deadlineMs < this.soonestMs) this.soonestMs = prediction.deadlineMs;
    }
  }

  /** Removes and returns all requests, in the order in which they came. */
  take(): PredictionRequest[] {
    const taken = [...this.open];
    for (const prediction of taken) this.delete(prediction);
    this.soonestMs = Number.POSITIVE_INFINITY;
    return taken;
  }

  get size(): number {
    return this.open.size;
  }
}
