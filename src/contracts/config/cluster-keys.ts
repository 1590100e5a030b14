/**
 * Keys of `compute` that say how pods of a cluster run a worker. Where a worker is a process of the server's machine,
 * `quern check` and `quern deploy` refuse them, because ignoring one would run a predictor where it should not run
 * (docs/contract/configuration.md#cluster-keys).
 */

/** Each key, and what to use instead. */
export const CLUSTER_KEYS = {
  node_selector: "give the server's own pod a node selector",
  tolerations: "give the server's own pod the tolerations",
  image: "list Python packages in requirements.txt, and install the rest in dependencies.sh",
  service_account: "give the server's own pod the service account",
  secrets: "give the values in predictor.env, or in a file of the machine that the predictor reads",
  queue: "give the job a priority",
} as const;

export type ClusterKey = keyof typeof CLUSTER_KEYS;

/** Why the key is refused, and what to do. */
export function clusterKeyCure(key: ClusterKey): string {
  return `is for workers in pods of their own, and here they are processes of the server's machine: remove this key; ${CLUSTER_KEYS[key]}`;
}
