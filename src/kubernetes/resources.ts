/** The kinds of objects that Quern uses, and the fields that it reads of them. */

export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface KubernetesObject {
  metadata: Metadata;
}

/** Groups and versions of the kinds, and how a path names them. */
const KINDS = {
  ConfigMap: { api: "/api/v1", plural: "configmaps" },
  Event: { api: "/api/v1", plural: "events" },
  Pod: { api: "/api/v1", plural: "pods" },
} as const;

export type Kind = keyof typeof KINDS;

/** The path of all objects of a kind in a namespace, or of the one with this name. */
export function pathOf(kind: Kind, namespace: string, name?: string): string {
  const { api, plural } = KINDS[kind];
  const all = `${api}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
  return name === undefined ? all : `${all}/${encodeURIComponent(name)}`;
}
