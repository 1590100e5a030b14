/** Why the pods of an API's newest version do not serve: what `quern get` says of the API. Pure. */

import { EnvironmentError } from "../../engine/environments/environment-error.ts";
import { preparationError } from "../../engine/environments/step-failed.ts";
import type { PodState } from "../../kubernetes/pod-state.ts";
import type { PodReason } from "../../kubernetes/pod-trouble.ts";
import type { LauncherFailure } from "../../kubernetes/pods/launcher.ts";
import type { FailureKind } from "../serving/api-replicas.ts";

export interface JudgedPod {
  state: PodState;
  isServing: boolean;
  /** What its worker said, or how it ended. */
  trouble: { kind: FailureKind; message: string } | undefined;
  /** Why it cannot run a worker yet, as its launcher tells it. */
  unprepared: LauncherFailure | undefined;
}

export interface Judgement {
  failure?: { kind: FailureKind; message: string };
  /** What pods wait for. */
  lack?: string;
}

/** A person or a queue must make room, or the pod's turn comes. */
const WAITS: ReadonlySet<PodReason> = new Set(["Unschedulable", "Gated"]);
/** What is over by itself, or is no fault of the pod. */
const PASSES: ReadonlySet<PodReason> = new Set([
  "NotReady",
  "Drained",
  "Preempted",
  "Evicted",
  "NodeLost",
  "NodeSilent",
]);
const KINDS: Partial<Record<PodReason, FailureKind>> = { OutOfMemory: "memory", Exited: "death" };
/** A server that does not answer for a moment, such as during its own update, is no failure of the API. */
const PASSES_S = 10;

/** `pods`: those of the newest version. `refused`: why the cluster creates none, in its own words. */
export function judgePods(pods: readonly JudgedPod[], refused: string | undefined): Judgement {
  const waiting = pods.filter(({ isServing }) => !isServing);
  const failure = waiting.map(failureOf).find((found) => found !== undefined);
  if (failure !== undefined) return { failure };
  const lack = waiting.map(lackOf).find((found) => found !== undefined);
  if (lack !== undefined) return { lack };
  if (refused === undefined) return {};
  if (/quota/.test(refused)) return { lack: refused };
  return { failure: { kind: "other", message: refused } };
}

function failureOf({ state, trouble, unprepared }: JudgedPod): Judgement["failure"] {
  if (trouble !== undefined) return trouble;
  const { trouble: seen } = state;
  if (seen !== undefined && !WAITS.has(seen.reason) && !PASSES.has(seen.reason))
    return { kind: KINDS[seen.reason] ?? "other", message: `${seen.reason}: ${seen.detail}` };
  if (unprepared === undefined || (!unprepared.is_final && unprepared.for_s < PASSES_S)) return undefined;
  const error = preparationError(unprepared);
  return { kind: error instanceof EnvironmentError ? "requirements" : "other", message: error.message };
}

function lackOf({ state: { trouble } }: JudgedPod): string | undefined {
  return trouble !== undefined && WAITS.has(trouble.reason) ? trouble.detail : undefined;
}
