/** What a job says that waits for pods. */
import { expect, it } from "vitest";
import { type PodsOfJob, whyPodsWait } from "../../../src/batch/pods/why-pods-wait.ts";

const NOTHING: PodsOfJob = {
  refused: undefined,
  hasJob: true,
  isSuspended: false,
  isHeldBack: false,
  queue: undefined,
  pods: [],
};
const pending = { phase: "pending", isInterruption: false } as const;
const podWith = (reason: "Unschedulable" | "ImagePullFailed" | "NotReady", detail: string) => {
  return { state: { ...pending, trouble: { reason, detail } }, says: undefined };
};

it.each<[string, Partial<PodsOfJob>]>([
  ["its pod starts", {}],
  ["a job of a higher priority waits for a place on a node, and comes first", { isHeldBack: true }],
  ["the cluster is asked for pods", { hasJob: false }],
  ["the cluster does not take the Job: forbidden", { refused: "forbidden", hasJob: false }],
  ["the Job is suspended", { isSuspended: true }],
  ["queue gpus has not admitted the Job yet", { isSuspended: true, queue: "gpus" }],
  [
    "no node has a place for it: 0/2",
    { pods: [podWith("Unschedulable", "no node has a place for it: 0/2")] },
  ],
  ["ImagePullFailed: container worker: x", { pods: [podWith("ImagePullFailed", "container worker: x")] }],
  ["its pod starts", { pods: [podWith("NotReady", "it runs")] }],
  [
    "its pod is not prepared yet: failed: pip failed",
    { pods: [{ state: pending, says: "failed: pip failed" }] },
  ],
])("%s", (expected, pods) => {
  expect(whyPodsWait({ ...NOTHING, ...pods })).toBe(expected);
});
