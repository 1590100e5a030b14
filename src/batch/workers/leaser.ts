/** The owner of the batches that a worker of a job has. */
import type { Ack } from "../../protocol/ack.ts";
import type { BatchWorker } from "./batch-worker.ts";

/** It receives acknowledgements, and batches that are given back. */
export interface Leaser {
  acked(worker: BatchWorker, ack: Ack): void;
  released(batches: number[]): void;
  /** A worker may get batches again. */
  pump(): void;
}

/** Until a worker is served: nothing is leased yet, so nothing can be acknowledged or given back. */
export const NO_LEASER: Leaser = { acked: () => {}, released: () => {}, pump: () => {} };
