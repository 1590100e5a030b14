/**
 * Keys of `compute` that say how pods of a cluster run a worker. This release starts workers as processes of the
 * server's machine, also where the server itself is a pod. `quern check` and `quern deploy` refuse the keys, because
 * ignoring one would run a predictor where it should not run (docs/contract/configuration.md#cluster-keys).
 */

/** Each key, and what to use instead. */
export const CLUSTER_KEYS: Readonly<Record<string, string>> = {
  node_selector: "give the server's own pod a node selector",
  tolerations: "give the server's own pod the tolerations",
  image: "list Python packages in requirements.txt, and install the rest in dependencies.sh",
  service_account: "give the server's own pod the service account",
  secrets: "give the values in predictor.env, or in a file of the machine that the predictor reads",
  queue: "give the job a priority",
};

/** Why the key is refused, and what to do; undefined if it is none of these. */
export function clusterKeyCure(path: readonly (string | number)[]): string | undefined {
  const [section, name] = path;
  if (path.length !== 2 || section !== "compute" || !Object.hasOwn(CLUSTER_KEYS, name!)) return undefined;
  const cure = CLUSTER_KEYS[name!];
  return `is for workers in pods of their own, and here they are processes of the server's machine: remove this key; ${cure}`;
}
