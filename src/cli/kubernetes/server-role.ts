/** What the server may do in the cluster if workers run in pods of their own: in its namespace only. */

/** The verbs of server-side apply: an object that is not there yet is created, another one is changed. */
const APPLY = ["get", "create", "patch", "delete"];
const FOLLOW = ["list", "watch"];

export function roleOf(metadata: object): object {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata,
    rules: [
      { apiGroups: ["apps"], resources: ["deployments"], verbs: [...APPLY, ...FOLLOW] },
      { apiGroups: ["batch"], resources: ["jobs"], verbs: [...APPLY, ...FOLLOW] },
      { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: [...APPLY, "list"] },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: APPLY },
      // Secrets of APIs have names that depend on the APIs, so that a rule cannot list them.
      { apiGroups: [""], resources: ["secrets"], verbs: [...APPLY, "list"] },
      { apiGroups: [""], resources: ["pods"], verbs: ["get", "delete", ...FOLLOW] },
      { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
    ],
  };
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
