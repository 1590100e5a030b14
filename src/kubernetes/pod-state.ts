/**
 * What the state of a pod means for the worker in it: whether it serves, why not, and what a person may do. Pure. Where
 * Kubernetes says why in its own words, they are in `detail`.
 */
import { containerTrouble, endTrouble } from "./container-trouble.ts";
import type { Pod, PodCondition } from "./pod.ts";
import type { PodReason, PodTrouble } from "./pod-trouble.ts";

export interface PodState {
  /** `pending`: on no node. `leaving`: it was asked to end. `lost`: its node is, and nobody knows whether it runs. */
  phase: "pending" | "starting" | "ready" | "leaving" | "succeeded" | "failed" | "lost";
  trouble?: PodTrouble;
  /** The cluster ended it, not what runs in it. So no batch in it loses an attempt. */
  isInterruption: boolean;
}

/** Kubernetes's words are not longer in messages. A scheduler's message about many kinds of nodes has some 500 letters. */
const WORDS_MAX = 1_000;

/** Reasons of the condition DisruptionTarget. */
const DISRUPTIONS: Readonly<Record<string, { reason: PodReason; what: string }>> = {
  PreemptionByScheduler: { reason: "Preempted", what: "a pod of higher priority took its place" },
  EvictionByEvictionAPI: { reason: "Drained", what: "somebody emptied its node" },
  DeletionByTaintManager: { reason: "NodeLost", what: "its node is gone, or does not take pods any more" },
  DeletionByPodGC: { reason: "NodeLost", what: "its node is gone" },
  TerminationByKubelet: { reason: "Evicted", what: "its node ended it" },
};

/** `notReady`: what the container itself says about why it is not ready; undefined if it was not asked. */
export function podState(pod: Pod, notReady?: string): PodState {
  const { phase = "Pending" } = pod.status ?? {};
  const ended = endedByCluster(pod);
  if (ended !== undefined) return ended;
  if (phase === "Succeeded") return own("succeeded");
  if (phase === "Failed") return own("failed", failure(pod));
  if (pod.metadata.deletionTimestamp !== undefined) return own("leaving");
  if (condition(pod, "PodScheduled")?.status !== "True") return own("pending", waiting(pod));
  if (condition(pod, "Ready")?.status === "True") return own("ready");
  return own("starting", containers(pod).map(containerTrouble).find(Boolean) ?? unready(pod, notReady));
}

function own(phase: PodState["phase"], trouble?: PodTrouble): PodState {
  return trouble === undefined
    ? { phase, isInterruption: false }
    : { phase, trouble: { ...trouble, detail: trouble.detail.slice(0, WORDS_MAX) }, isInterruption: false };
}

function endedByCluster(pod: Pod): PodState | undefined {
  const { phase, reason, message } = pod.status ?? {};
  const target = condition(pod, "DisruptionTarget");
  const disruption = target?.status === "True" ? DISRUPTIONS[target.reason ?? ""] : undefined;
  if (disruption !== undefined) {
    const words = message ?? target?.message;
    const detail = words === undefined ? disruption.what : `${disruption.what} (${words.trim()})`;
    const ended = phase === "Failed" ? "failed" : disruption.reason === "NodeLost" ? "lost" : "leaving";
    return { ...own(ended, { reason: disruption.reason, detail }), isInterruption: true };
  }
  if (phase !== "Failed" || reason === undefined || reason === "DeadlineExceeded") return undefined;
  const detail = message?.trim() ?? reason;
  const known = reason === "Evicted" ? reason : reason === "Terminated" ? "Drained" : undefined;
  // Everything else that a kubelet says about a whole pod is that it did not admit it.
  const trouble: PodTrouble = known
    ? { reason: known, detail }
    : { reason: "Refused", detail: `${reason}: ${detail}` };
  return { ...own("failed", trouble), isInterruption: true };
}

function failure(pod: Pod): PodTrouble {
  const { reason, message = "" } = pod.status ?? {};
  if (reason === "DeadlineExceeded") return { reason, detail: message };
  const ends = containers(pod).flatMap(({ name, state }) =>
    state?.terminated === undefined ? [] : [{ name, end: state.terminated }],
  );
  const failed = ends.find(({ end }) => end.exitCode !== 0);
  return failed === undefined
    ? { reason: "Exited", detail: message || "it failed, and Kubernetes does not say why" }
    : endTrouble(failed.name, failed.end);
}

function waiting(pod: Pod): PodTrouble | undefined {
  const { reason, message = "" } = condition(pod, "PodScheduled") ?? {};
  if (reason === "Unschedulable")
    return {
      reason,
      detail: `no node has a place for it: ${message}`,
      cure: "add a node, or ask for less compute; check its node selector and tolerations",
    };
  if (reason === "SchedulingGated")
    return {
      reason: "Gated",
      detail: "it waits until a queue admits it",
      cure: "check the quota of its queue",
    };
  return undefined;
}

/** Its containers run, but it gets no requests. */
function unready(pod: Pod, notReady: string | undefined): PodTrouble | undefined {
  const all = pod.status?.containerStatuses ?? [];
  if (all.length === 0 || all.some(({ state }) => state?.running === undefined)) return undefined;
  if (notReady !== undefined) return { reason: "NotReady", detail: notReady };
  // The kubelet would have said which container is not ready.
  if (all.every(({ ready }) => ready) && condition(pod, "Ready")?.reason === undefined)
    return {
      reason: "NodeSilent",
      detail: `node ${pod.spec?.nodeName} does not report to the cluster`,
      cure: "check the node (`kubectl describe node`); after some minutes the pod starts elsewhere",
    };
  return {
    reason: "NotReady",
    detail: "it runs, but is not ready",
    cure: "read its log (`kubectl logs POD`)",
  };
}

function containers(pod: Pod) {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
}

function condition(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((each) => each.type === type);
}
