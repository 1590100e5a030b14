/** The phase of a job that its workers serve, and the owner of the batches that they have, as the workers see them. */
import type { Ack } from "../../protocol/ack.ts";
import type { BatchWorker } from "./batch-worker.ts";
import type { WorkerDeath } from "./worker-death.ts";

export interface WorkersOwner {
  readonly wantedWorkers: number;
  /** Known once all batches are enqueued. */
  readonly totalBatches: number | undefined;
  ready(worker: BatchWorker): void;
  /** A ready worker died. It is replaced. */
  died(worker: BatchWorker, death: WorkerDeath): void;
}

export const NO_OWNER: WorkersOwner = { wantedWorkers: 0, totalBatches: undefined, ready() {}, died() {} };

/** As many workers as the submission wants, but no more than batches are left. At least one, for `on_job_complete`. */
export function wantedWorkers(asked: number, batchesLeft: number): number {
  return Math.max(1, Math.min(asked, batchesLeft));
}

/** It receives acknowledgements, and batches that are given back. */
export interface Leaser {
  acked(worker: BatchWorker, ack: Ack): void;
  released(batches: number[]): void;
  /** A worker may get batches again. */
  pump(): void;
}

/** Until a worker is served: nothing is leased yet, so nothing can be acknowledged or given back. */
export const NO_LEASER: Leaser = { acked: () => {}, released: () => {}, pump: () => {} };
