/** Why a job's workers have no pod yet, as a clause for people. Pure. */
import type { PodState } from "../../kubernetes/pod-state.ts";
import type { PodReason } from "../../kubernetes/pod-trouble.ts";

export interface PodsOfJob {
  /** Why the cluster does not take the Job, in its own words. */
  refused: string | undefined;
  hasJob: boolean;
  /** Something, such as a queue, has suspended the Job. */
  isSuspended: boolean;
  queue: string | undefined;
  /** Pods of a job of a higher priority have no place. */
  isHeldBack: boolean;
  /** Those that no worker uses yet. */
  pods: readonly { state: PodState; says: string | undefined }[];
}

/** Kubernetes's words for these are a sentence about the pod already. */
const PLAIN: ReadonlySet<PodReason> = new Set(["Unschedulable", "Gated"]);

export function whyPodsWait({ refused, hasJob, isSuspended, isHeldBack, queue, pods }: PodsOfJob): string {
  if (refused !== undefined) return `the cluster does not take the Job: ${refused}`;
  if (!hasJob) return "the cluster is asked for pods";
  if (isSuspended)
    return queue === undefined ? "the Job is suspended" : `queue ${queue} has not admitted the Job yet`;
  if (isHeldBack) return "a job of a higher priority waits for a place on a node, and comes first";
  const trouble = pods.map(({ state }) => state.trouble).find((each) => each && each.reason !== "NotReady");
  if (trouble !== undefined)
    return PLAIN.has(trouble.reason) ? trouble.detail : `${trouble.reason}: ${trouble.detail}`;
  const says = pods.map((pod) => pod.says).find((each) => each !== undefined);
  return says === undefined ? "its pod starts" : `its pod is not prepared yet: ${says}`;
}
