/** Facts about an API and a job with which nothing is wrong, for tests that change some of them. */
import { emptyTally, type Tally } from "../../src/contracts/reports.ts";
import type { ApiFacts, RolloutFacts, TrafficFacts } from "../../src/explain/api/api-facts.ts";
import type { ComputeFacts, ServerFacts, WorkerFacts } from "../../src/explain/facts.ts";
import type { JobFacts, JobWorkerFacts } from "../../src/explain/job/job-facts.ts";

const MIB = 1024 * 1024;
export const SERVER: ServerFacts = {
  databaseFault: undefined,
  diskFault: undefined,
  gateways: { wanted: 1, connected: 1 },
};
export const COMPUTE: ComputeFacts = {
  total: { cpus: 4, memoryBytes: 8192 * MIB, gpus: 1 },
  free: { cpus: 1, memoryBytes: 4096 * MIB, gpus: 0 },
  holders: [
    { holder: "API small", amount: { cpus: 1, memoryBytes: 0, gpus: 1 } },
    { holder: "API big", amount: { cpus: 2, memoryBytes: 0, gpus: 0 } },
  ],
};
const WORKER: WorkerFacts = { id: "r-1", state: "ready", ageS: 100, memory: undefined };
export const ROLLOUT: RolloutFacts = {
  ...{ wanted: 1, upToDate: 1, because: "as configured", min: 1, max: 10, target: 1, parallel: 1 },
  ...{ failure: undefined, lacks: undefined, isCrashing: false, restarts: 0, lastExit: undefined },
  ...{ installingS: undefined, startupTimeoutS: 600, replicas: [{ ...WORKER, isNew: true }] },
};
export const TRAFFIC: TrafficFacts = {
  ...{ seconds: 300, tally: emptyTally(), inFlight: 0, waiting: 0, exceptions: [], timeoutS: 60 },
  ...{ lastFailures: undefined, switched: undefined, wereMost: false },
};

/** A tally of requests that all waited and took so long, in seconds. */
export function tallyOf(requests: { wait: number; took: number }[], more: Partial<Tally> = {}): Tally {
  const tally = emptyTally();
  for (const { wait, took } of requests) {
    count(tally.wait, wait);
    count(tally.duration, took);
  }
  return { ...tally, answers: { "2xx": requests.length }, ...more };
}

function count(histogram: Tally["wait"], seconds: number): void {
  const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
  const at = bounds.findIndex((bound) => seconds <= bound);
  histogram.buckets[at < 0 ? bounds.length : at]!++;
  histogram.sum_s += seconds;
}

export const API: ApiFacts = {
  ...{ name: "x", kind: "RealtimeAPI", status: "live", unreadable: undefined, server: SERVER },
  ...{
    compute: COMPUTE,
    rollout: ROLLOUT,
    traffic: TRAFFIC,
    jobs: undefined,
    targets: [],
    troubles: [],
  },
};

export const JOB_WORKER: JobWorkerFacts = {
  ...WORKER,
  id: "b-1",
  busy: { batch: 5, forS: 0.1 },
  idleShare: 0.01,
};
export const JOB: JobFacts = {
  ...{ apiName: "x", jobId: "j", status: "status_running", server: SERVER, compute: COMPUTE },
  ...{ paused: undefined, isEnding: false, waiting: undefined, storeError: undefined },
  ...{ phase: "dispatching", enqueuedBatches: 100, total: 100, succeeded: 50, failedBatches: 0 },
  ...{ failedAttempts: 0, averageS: 0.1, workersAsked: 1 },
  counts: { pending: 0, initializing: 0, running: 1, succeeded: 0, failed: 0, stalled: 0 },
  need: { cpus: 1, memoryBytes: 0, gpus: 0 },
  workers: [JOB_WORKER],
  ...{ input: undefined, installingS: undefined, startupTimeoutS: 600, timeout: undefined },
  ...{ failures: [], letters: undefined, reason: undefined, ended: undefined },
  redriven: undefined,
};
