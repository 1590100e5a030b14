/** What a worker of a job tells, and what it is made with. */
import type { WorkerExit } from "../../engine/engine.ts";
import type { Lifetime } from "../../engine/lifetime.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import type { OpenRows } from "../deliveries/deliveries.ts";
import type { WarmWorker } from "../warm/warm-workers.ts";
import type { BatchWorker } from "./batch-worker.ts";
import type { WorkerDeath } from "./worker-death.ts";

export interface BatchWorkerEvents {
  onReady(worker: BatchWorker): void;
  /** It has been starting for so many seconds. */
  onLongStart(worker: BatchWorker, seconds: number): void;
  onSetUpFailed(worker: BatchWorker, fault: WorkerFault): void;
  /** It could not even listen, because the machine has run out of inodes or file handles. */
  onDiskFull(worker: BatchWorker): void;
  /** Its pod was taken from it before it was ready. */
  onInterrupted(worker: BatchWorker, exit: WorkerExit): void;
  onDeath(worker: BatchWorker, death: WorkerDeath): void;
  /** Receives internal errors that no other callback reports. */
  onFault(error: Error): void;
}

/** What goes with a process from job to job. */
export type FormerLife = Pick<WarmWorker, "exit" | "wear">;

export interface BatchWorkerOptions {
  lifetime: Lifetime;
  /** Undefined if the job has no output. */
  openRows?: OpenRows | undefined;
  /** Of a process that has worked for other jobs; undefined if it has just been started. */
  former?: FormerLife | undefined;
}
