/** The client of the tested code, with the rights of the person who runs the cluster. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ApiClient } from "../../src/kubernetes/api-client.ts";
import type { ClusterAccess } from "../../src/kubernetes/cluster-access.ts";
import { readKubeconfig } from "../../src/kubernetes/kubeconfig.ts";
import { RUN } from "./kubectl.ts";

export function adminAccess(): ClusterAccess {
  const file = join(RUN, "admin.kubeconfig");
  return readKubeconfig(readFileSync(file, "utf8"), file, (path) => readFileSync(path, "utf8"));
}

export function adminClient(): ApiClient {
  return new ApiClient(adminAccess());
}
