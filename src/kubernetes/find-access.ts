/** Finds the cluster: that of a kubeconfig, or else the one that this process is a pod of. */
import { existsSync, readFileSync } from "node:fs";
import { type ClusterAccess, podAccess } from "./cluster-access.ts";
import { readKubeconfig } from "./kubeconfig.ts";

/** `file`: the kubeconfig's path. Throws an error with a cure if there is no cluster. */
export function findAccess(file: string, env: Readonly<Record<string, string | undefined>>): ClusterAccess {
  if (existsSync(file))
    return readKubeconfig(readFileSync(file, "utf8"), file, (path) => readFileSync(path, "utf8"));
  const access = podAccess(env);
  if (access !== undefined) return access;
  throw new Error(`${file} does not exist: name the kubeconfig of your cluster with KUBECONFIG`);
}
