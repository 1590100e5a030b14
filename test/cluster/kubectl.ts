/** Commands of the person who runs the cluster. They work in its control plane's network namespace only. */
import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** The directory of the cluster (scripts/cluster.mjs). */
export const RUN = process.env.QUERN_TEST_CLUSTER!;

/** Of the control plane, as pods reach it. */
export const ADDRESS = "10.250.0.1";

/** Runs kubectl; resolves to what it printed. Throws with its error. */
export function kubectl(args: readonly string[], input?: string | object): string {
  return execFileSync("kubectl", ["--kubeconfig", join(RUN, "admin.kubeconfig"), ...args], {
    encoding: "utf8",
    input: typeof input === "object" ? JSON.stringify(input) : input,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  }).trim();
}

/** Runs kubectl while this process does other things, such as load. */
export async function kubectlBeside(args: readonly string[]): Promise<string> {
  const all = ["--kubeconfig", join(RUN, "admin.kubeconfig"), ...args];
  return (await promisify(execFile)("kubectl", all)).stdout.trim();
}

export function apply(object: string | object): void {
  kubectl(["apply", "-f", "-"], object);
}

/** A namespace that admits only pods that meet the `restricted` Pod Security Standard. */
export function restrictedNamespace(name: string): object {
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

/** A volume for any one claim: a directory of this machine, which all nodes see. */
export function volume(name: string, path: string): object {
  const spec = {
    capacity: { storage: "10Gi" },
    accessModes: ["ReadWriteOnce"],
    hostPath: { path },
    persistentVolumeReclaimPolicy: "Retain",
  };
  return { apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec };
}
