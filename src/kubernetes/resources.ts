/** The kinds of objects that Quern uses, and the fields that it reads of them. */

export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  /** Rises with each change of the object's specification. */
  generation?: number;
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  ownerReferences?: readonly { uid: string }[];
}

export interface KubernetesObject {
  metadata: Metadata;
}

/** Groups and versions of the kinds, and how a path names them. */
const KINDS = {
  ConfigMap: { api: "/api/v1", plural: "configmaps" },
  Deployment: { api: "/apis/apps/v1", plural: "deployments" },
  Event: { api: "/api/v1", plural: "events" },
  Job: { api: "/apis/batch/v1", plural: "jobs" },
  NetworkPolicy: { api: "/apis/networking.k8s.io/v1", plural: "networkpolicies" },
  Pod: { api: "/api/v1", plural: "pods" },
  PodDisruptionBudget: { api: "/apis/policy/v1", plural: "poddisruptionbudgets" },
  Secret: { api: "/api/v1", plural: "secrets" },
} as const;

export type Kind = keyof typeof KINDS;

/** As an object of the kind names its group and version. */
export function apiVersionOf(kind: Kind): string {
  return KINDS[kind].api.replace(/^\/apis?\//, "");
}

/** The path of all objects of a kind in a namespace, or of the one with this name. */
export function pathOf(kind: Kind, namespace: string, name?: string): string {
  const { api, plural } = KINDS[kind];
  const all = `${api}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
  return name === undefined ? all : `${all}/${encodeURIComponent(name)}`;
}
