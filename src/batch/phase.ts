/** The phases of a job's run: one at a time, each with all its parts. */
import type { DiskWait } from "../base/disk-full.ts";
import type { WorkerCounts } from "../contracts/jobs.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import type { InputPace } from "./dispatch/segment-reader.ts";
import type { EnqueueTurns } from "./enqueue/enqueue-turns.ts";
import type { JobDeps } from "./job-deps.ts";
import type { JobOutput } from "./output/job-output.ts";
import type { JobInput } from "./records/job-input.ts";
import type { JobRow } from "./records/job-rows.ts";
import type { EndCause } from "./records/job-status.ts";
import type { WorkerSpans } from "./spans/worker-spans.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";
import type { JobWorkers } from "./workers/job-workers.ts";

export interface Phase {
  readonly workers: Pick<JobWorkers, "counts" | "stopAll">;
  /** Says what the job or its workers wait for, and who holds it if `withNames`; undefined if for nothing. */
  waiting(withNames: boolean): string | undefined;
  /** For explanations. */
  look(nowMs: number): PhaseLook;
  /** Called four times a second. */
  tick(nowMs: number): void;
  /** Begins no further batch. Resolves when no worker has one any more. */
  drain(): Promise<void>;
  /** Stops leasing; results that still arrive do not count. Resolves when those that did arrive are durable. */
  close(): Promise<void>;
  /** Closes the phase and stops reading the input. */
  leave(): Promise<void>;
}

/** What a phase does at this moment. */
export interface PhaseLook {
  name: "preparing" | "enqueuing" | "dispatching";
  workers: readonly BatchWorker[];
  /** How fast the input of batches comes. */
  input?: InputPace & { isExhausted: boolean };
}

/** The run of a job as its phases see it. */
export interface RunOfJob {
  readonly deps: JobDeps;
  readonly job: JobRow;
  /** How many workers the job had when the machine went down, if it did. */
  readonly lostWorkers: number;
  readonly startTime: string;
  readonly store: ObjectStore;
  readonly input: JobInput;
  /** Undefined if the job has none. */
  readonly output: JobOutput | undefined;
  /** How to wait while the disk is full. */
  readonly diskWait: DiskWait;
  readonly isEnding: boolean;
  /** The run ends once its batches in hand have ended. */
  readonly isPausing: boolean;
  /** When its workers worked. */
  readonly spans: WorkerSpans;
  /** Aborted when the job is ending, or is left to the next controller. */
  readonly over: AbortSignal;
  /** A worker is ready. Its first one ends the time in which the job was queued. */
  hasWorker(): void;
  /** Ends the job; the first cause wins. */
  endSoon(cause: EndCause): void;
  /** Ends the job because its output cannot be written. */
  failOutput(error: Error): void;
  /** Ends the job because of a bug; if another controller has it now, only this run of it. */
  unexpected(error: Error): void;
}

export const NO_WORKERS: WorkerCounts = {
  ...{ pending: 0, initializing: 0, running: 0 },
  ...{ succeeded: 0, failed: 0, stalled: 0 },
};

/** The API and the input of the job are being looked up: there is no worker yet. */
export const PREPARING: Phase = {
  workers: {
    counts: () => NO_WORKERS,
    stopAll: async () => {},
  },
  waiting: () => undefined,
  look: () => ({ name: "preparing", workers: [] }),
  tick: () => {},
  drain: async () => {},
  close: async () => {},
  leave: async () => {},
};

/** The job waits until it may enqueue, and has no worker yet. */
export function waitingToEnqueue(turns: EnqueueTurns): Phase {
  return { ...PREPARING, waiting: () => turns.describeWaiting() };
}
