/** Why a container of a pod does not run. Pure. */
import type { ContainerEnd, ContainerStatus, Pod } from "./pod.ts";
import type { PodTrouble } from "./pod-trouble.ts";

/** What the kubelet's words for a waiting container mean. */
const WAITING: Readonly<Record<string, Pick<PodTrouble, "reason" | "cure">>> = {
  ErrImagePull: pull("check the image's name, and that the nodes can reach its registry (imagePullSecrets)"),
  ImagePullBackOff: pull(
    "check the image's name, and that the nodes can reach its registry (imagePullSecrets)",
  ),
  ErrImageNeverPull: pull("load the image into the node, or allow it to be pulled"),
  InvalidImageName: pull("correct the image's name"),
  CreateContainerConfigError: cannotStart("create what it names, such as a Secret, or correct the name"),
  CreateContainerError: cannotStart("correct what the message names"),
  RunContainerError: cannotStart("check that the image has the command"),
};

function pull(cure: string) {
  return { reason: "ImagePullFailed", cure } as const;
}

function cannotStart(cure: string) {
  return { reason: "CannotStart", cure } as const;
}

/** Undefined if it runs, has ended well, or is about to start. */
export function containerTrouble({ name, state, lastState }: ContainerStatus): PodTrouble | undefined {
  const { waiting, terminated } = state ?? {};
  const known = WAITING[waiting?.reason ?? ""];
  if (known !== undefined)
    return { ...known, detail: `container ${name}: ${waiting?.message ?? waiting?.reason}` };
  const isBackingOff = waiting?.reason === "CrashLoopBackOff";
  const end = terminated ?? (isBackingOff ? lastState?.terminated : undefined);
  return end === undefined || (end.exitCode === 0 && !isBackingOff) ? undefined : endTrouble(name, end);
}

/** How a container ended, whether it is started again or not. */
export function endTrouble(name: string, { exitCode, reason, message }: ContainerEnd): PodTrouble {
  if (reason === "OOMKilled")
    return {
      reason: "OutOfMemory",
      detail: `container ${name} was killed because it needed more memory than its limit`,
      cure: "raise compute.mem, or give the container a higher limit",
    };
  if (reason === "StartError")
    return {
      ...cannotStart("check that the image has the command"),
      detail: `container ${name}: ${message ?? reason}`,
    };
  // Above 128 the number is a signal, as shells count.
  const how = exitCode > 128 ? `was killed by signal ${exitCode - 128}` : `exited with code ${exitCode}`;
  return {
    reason: "Exited",
    detail: `container ${name} ${how}${message === undefined ? "" : `: ${message}`}`,
    cure: `read its log (\`kubectl logs POD -c ${name} --previous\`)`,
  };
}

/** Why a container of the pod was started again since the pod was seen as `before`; undefined if none was. */
export function restartTrouble(before: Pod, now: Pod): PodTrouble | undefined {
  const counts = new Map(
    before.status?.containerStatuses?.map(({ name, restartCount }) => [name, restartCount]),
  );
  for (const { name, restartCount, lastState } of now.status?.containerStatuses ?? []) {
    const end = lastState?.terminated;
    if (end !== undefined && restartCount > (counts.get(name) ?? restartCount)) return endTrouble(name, end);
  }
  return undefined;
}
