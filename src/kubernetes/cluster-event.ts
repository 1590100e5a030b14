/** Which events of a cluster are about the owner of pods. Pure. */
import type { KubernetesObject } from "./resources.ts";

/** As `kubectl get events` shows it: what happened to an object. */
export interface ClusterEvent extends KubernetesObject {
  involvedObject: { kind: string; name: string };
  message?: string;
  /** When it happened last; null if only `eventTime` is known. */
  lastTimestamp?: string | null;
  eventTime?: string | null;
}

/** The newest event of an object of this name, or of the ReplicaSet of a Deployment of this name. */
export function newestOf(owner: string, events: readonly ClusterEvent[]): ClusterEvent | undefined {
  const own = events.filter(({ involvedObject }) => isOf(owner, involvedObject));
  return own.sort((a, b) => atMs(a) - atMs(b)).at(-1);
}

/** A ReplicaSet has the name of its Deployment, a hyphen, and a hash. */
function isOf(owner: string, { kind, name }: ClusterEvent["involvedObject"]): boolean {
  if (name === owner) return true;
  return kind === "ReplicaSet" && name.startsWith(`${owner}-`) && !name.slice(owner.length + 1).includes("-");
}

function atMs({ lastTimestamp, eventTime, metadata }: ClusterEvent): number {
  return Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "") || 0;
}
