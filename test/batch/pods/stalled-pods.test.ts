/** How long a job's workers wait for pods that get no place, and what is said then. */
import { expect, it } from "vitest";
import { openLog } from "../../../src/base/log.ts";
import { JobPod } from "../../../src/batch/pods/job-pod.ts";
import { JobPodSet } from "../../../src/batch/pods/job-pod-set.ts";
import { WorkerLog } from "../../../src/batch/workers/worker-log.ts";
import { WorkerReservations } from "../../../src/batch/workers/worker-reservations.ts";
import { STALLED_AFTER_MS } from "../../../src/contracts/limits/jobs.ts";
import { workersOf } from "../../../src/engine/scheduler/claims.ts";
import type { Pod } from "../../../src/kubernetes/pod.ts";
import { MANY_FILES } from "../../harness/open-files.ts";

const compute = { cpuMillis: 50, memoryBytes: 0, gpus: 0 };
const UNSCHEDULABLE: Pod["status"] = {
  ...{ phase: "Pending" },
  conditions: [
    {
      ...{ type: "PodScheduled", status: "False", reason: "Unschedulable" },
      message: "0/2 nodes are available: 2 Insufficient cpu.",
    },
  ],
};
const NOT_PULLED: Pod["status"] = {
  ...{ phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] },
  containerStatuses: [
    {
      ...{ name: "worker", ready: false, restartCount: 0 },
      state: { waiting: { reason: "ImagePullBackOff", message: "no such image" } },
    },
  ],
};

function waitingJob(status: Pod["status"]) {
  const set = new JobPodSet("j", () => {});
  set.jobUid = "job-1";
  const metadata = { name: "p", uid: "p", ownerReferences: [{ uid: "job-1" }] };
  const pod = new JobPod({ metadata, status }, { jobId: "j", api: "a", isSettled: true });
  set.pods.set("p", pod);
  const options = { account: set, openFiles: MANY_FILES, compute, by: workersOf("j", "a", 0) };
  const events = { reserved() {}, fault: (error: Error) => expect.unreachable(error.message) };
  const workers = new WorkerReservations(options, events);
  const lines: string[] = [];
  const spans = { started() {}, ready() {}, because() {}, ended() {} };
  const log = new WorkerLog({
    ...{ jobId: "j", log: openLog("test"), spans },
    jobLog: (line) => lines.push(line),
  });
  workers.keepAt(2);
  return { pod, workers, log, lines };
}

it.each([
  ["no node has a place for it: 0/2 nodes are available: 2 Insufficient cpu.", UNSCHEDULABLE],
  ["ImagePullFailed: container worker: no such image", NOT_PULLED],
])("workers are stalled after ten minutes, with the cluster's words: %s", (words, status) => {
  const { workers, log, lines } = waitingJob(status);
  const now = performance.now();
  const later = now + STALLED_AFTER_MS;
  expect(workers.counts(0, later - 1_000)).toEqual({ pending: 2, initializing: 0, stalled: 0 });
  expect(workers.counts(0, later + 1)).toEqual({ pending: 0, initializing: 0, stalled: 2 });
  expect(workers.describeWaiting(true)).toBe(`2 workers wait for compute: ${words}`);
  for (const nowMs of [now + 3_000, later - 1_000, later + 1, later + 2]) log.waiting(workers, nowMs);
  expect(lines).toEqual([
    `2 of 2 workers wait for compute: ${words}`,
    `2 of 2 workers are stalled: they wait for compute: ${words}`,
  ]);
});

it("a worker whose environment is being made in its pod is initializing, however long that takes", () => {
  const { pod, workers } = waitingJob({ phase: "Running", podIP: "10.0.0.1" });
  pod.says = "installing";
  const later = performance.now() + STALLED_AFTER_MS + 1;
  expect(workers.counts(0, later)).toEqual({ pending: 0, initializing: 1, stalled: 1 });
  pod.isPrepared = true;
  pod.says = undefined;
  expect(workers.counts(0, later)).toEqual({ pending: 0, initializing: 0, stalled: 2 });
});
