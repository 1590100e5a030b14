/** Why a pod does not serve, as a word for programs and a clause for people. */

export type PodReason =
  | "Unschedulable"
  | "Gated"
  | "ImagePullFailed"
  | "CannotStart"
  | "OutOfMemory"
  | "Exited"
  | "NotReady"
  | "Evicted"
  | "Preempted"
  | "Drained"
  | "NodeLost"
  | "NodeSilent"
  | "DeadlineExceeded"
  | "Refused";

export interface PodTrouble {
  reason: PodReason;
  /** What happened, as a clause. */
  detail: string;
  cure?: string;
}
