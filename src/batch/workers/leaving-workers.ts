/**
 * The workers of a job that leave before its end, between two batches: those that yield, those that have reached
 * `max_requests` or `max_age`, and all of them when the job is paused.
 */
import type { Lifetime } from "../../engine/lifetime.ts";
import type { BatchWorker } from "./batch-worker.ts";

export class LeavingWorkers {
  private readonly wearOut: boolean;
  private readonly asked = new Set<BatchWorker>();
  private drained: (() => void) | undefined;

  constructor({ maxRequests, maxAgeMs }: Lifetime) {
    this.wearOut = maxRequests !== undefined || maxAgeMs !== undefined;
  }

  /** Whether there may be such a worker. */
  get mayBeAny(): boolean {
    return this.wearOut || this.asked.size > 0;
  }

  /** All workers are to leave, and no other one is to start. */
  get isDraining(): boolean {
    return this.drained !== undefined;
  }

  /** Asks a worker to yield, or tells it that it may stay. While all are to leave, it may not. */
  ask(worker: BatchWorker, isAsked: boolean): void {
    worker.isAskedToYield = isAsked || this.isDraining;
    if (worker.isAskedToYield) this.asked.add(worker);
    else this.asked.delete(worker);
  }

  /** Asks all `workers` to leave. Resolves when none is left. */
  drain(workers: Iterable<BatchWorker>): Promise<void> {
    return new Promise((resolve) => {
      this.drained = resolve;
      const all = [...workers];
      for (const worker of all) this.ask(worker, true);
      if (all.length === 0) resolve();
    });
  }

  /** A worker is gone, and so many are left. */
  hasLeft(worker: BatchWorker, left: number): void {
    this.asked.delete(worker);
    if (left === 0) this.drained?.();
  }
}
