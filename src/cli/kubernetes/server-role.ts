/**
 * The server's rights in the cluster, in its namespace only: keep its workers' pods, if they have pods of their own,
 * also which of them go first, and change the label of the active server's pod, if there may be several.
 */
import type { PodChoice } from "./server-pod.ts";

/** The verbs of server-side apply: an object that is not there yet is created, another one is changed. */
const APPLY = ["get", "create", "patch", "delete"];
const FOLLOW = ["list", "watch"];

export function roleOf(metadata: object, { workerImage, state }: PodChoice): object {
  const label = state === undefined ? [] : ["patch"];
  const pods = { apiGroups: [""], resources: ["pods"] };
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata,
    rules:
      workerImage === undefined
        ? [{ ...pods, verbs: ["list", ...label] }]
        : [...forWorkers(), { ...pods, verbs: ["get", "delete", "patch", ...FOLLOW] }],
  };
}

function forWorkers(): readonly object[] {
  return [
    { apiGroups: ["apps"], resources: ["deployments"], verbs: [...APPLY, ...FOLLOW] },
    { apiGroups: ["batch"], resources: ["jobs"], verbs: [...APPLY, ...FOLLOW] },
    { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: [...APPLY, "list"] },
    { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: APPLY },
    // Secrets of APIs have names that depend on the APIs, so that a rule cannot list them.
    { apiGroups: [""], resources: ["secrets"], verbs: [...APPLY, "list"] },
    { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  ];
}

export function bindingOf(metadata: { name: string; namespace: string }): object {
  const { name, namespace } = metadata;
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name, namespace }],
  };
}
