/**
 * Requests with the time at which each has to be done, in any order: a request whose body took long to come, or that slept, or
 * that came before another `predictor.timeout` was deployed, is due sooner than one that was added before it. Those that
 * are done with are forgotten at once.
 */
import type { Prediction } from "./prediction.ts";

export class Deadlines {
  private readonly open = new Set<Prediction>();
  /** None of them is due before this: nothing is looked through until then. */
  private soonestMs = Number.POSITIVE_INFINITY;

  add(prediction: Prediction, atMs: number): void {
    prediction.deadlineMs = atMs;
    this.open.add(prediction);
    if (atMs < this.soonestMs) this.soonestMs = atMs;
  }

  delete(prediction: Prediction): void {
    this.open.delete(prediction);
  }

  /** Forgets each request that is past its time, and calls back with it. */
  expire(nowMs: number, onExpired: (prediction: Prediction) => void): void {
    if (nowMs < this.soonestMs) return;
    this.soonestMs = Number.POSITIVE_INFINITY;
    for (const prediction of this.open) {
      if (prediction.deadlineMs <= nowMs) {
        this.open.delete(prediction);
        onExpired(prediction);
      } else if (prediction.deadlineMs < this.soonestMs) this.soonestMs = prediction.deadlineMs;
    }
  }

  /** All of them, in the order in which they came; none is left. */
  take(): Prediction[] {
    const taken = [...this.open];
    this.open.clear();
    this.soonestMs = Number.POSITIVE_INFINITY;
    return taken;
  }

  get size(): number {
    return this.open.size;
  }
}
