/** What one run of a job does at this moment, for explanations. It changes nothing. */
import { ageMsOf } from "../engine/lifetime.ts";
import type { JobRun } from "./job-run.ts";
import type { PhaseLook } from "./phase.ts";
import type { WorkerSpans } from "./spans/worker-spans.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";

export interface WorkerLook {
  id: string;
  state: BatchWorker["state"];
  /** Since its process started. */
  ageMs: number;
  /** The oldest batch that it has, and for how long nothing was heard about it. */
  busy: { batch: number; forMs: number } | undefined;
  /** How much of its time since its first batch it had none. */
  idleShare: number | undefined;
  /** Batches that it got. */
  batches: number;
}

export interface JobLook extends Omit<PhaseLook, "workers"> {
  isEnding: boolean;
  /** The store that it waits for, and its error. */
  storeError: string | undefined;
  /** Until its timeout; infinity without one. */
  leftMs: number;
  workers: WorkerLook[];
  /** What is not saved yet about when its workers worked. */
  spans: ReturnType<WorkerSpans["unsaved"]>;
}

export function lookAt({ phase, isEnding, storeWait, deadline, spans }: JobRun, nowMs: number): JobLook {
  const { workers, ...rest } = phase.look(nowMs);
  return {
    ...rest,
    ...{ isEnding, storeError: storeWait.describe(), leftMs: deadline.endsMs - nowMs },
    spans: spans.unsaved(),
    workers: workers.map((worker) => workerLook(worker, nowMs)),
  };
}

function workerLook({ identity, state, deliveries, lastProgressMs }: BatchWorker, nowMs: number): WorkerLook {
  const batch = deliveries.outstanding.oldest;
  return {
    ...{ id: identity.worker_id, state, ageMs: ageMsOf(identity) },
    busy: batch === undefined ? undefined : { batch, forMs: nowMs - lastProgressMs },
    idleShare: deliveries.idleShare(nowMs),
    batches: deliveries.leased,
  };
}
