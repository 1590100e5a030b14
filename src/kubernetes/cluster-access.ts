/**
 * Where a cluster's API server is, and how it knows us: as a pod of the cluster, by its service account. Reads the
 * token again while the process runs, because the kubelet renews it.
 */
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CREDENTIALS_KEPT_MS } from "../contracts/limits/kubernetes/api-server.ts";

/** What a request says about who sends it. */
export interface Credentials {
  token?: string | undefined;
  /** A client certificate and its key, as PEM. */
  cert?: string | undefined;
  key?: string | undefined;
}

export interface ClusterAccess {
  /** Address of the API server, such as `https://10.96.0.1`. */
  server: string;
  /** Certificates of those who may sign the API server's, as PEM; undefined for the machine's own. */
  ca: string | undefined;
  /** The name in the API server's certificate, if it is not the host of `server`. */
  serverName?: string | undefined;
  /** The namespace if a command names none. */
  namespace: string;
  /** `isRefused`: the API server has refused those that were read last. */
  credentials: (isRefused: boolean) => Promise<Credentials>;
}

/** Where Kubernetes mounts the token of a pod's service account. */
export const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The access of this pod; undefined outside a cluster. `directory`: see SERVICE_ACCOUNT. */
export function podAccess(
  env: Readonly<Record<string, string | undefined>>,
  directory = SERVICE_ACCOUNT,
): ClusterAccess | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  const tokenFile = join(directory, "token");
  if (host === undefined || !existsSync(tokenFile)) return undefined;
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca: read("ca.crt"),
    namespace: read("namespace").trim(),
    credentials: renewedToken(tokenFile),
  };
}

/** Reads a token's file again once a minute, and at once if the token was refused. */
export function renewedToken(file: string): ClusterAccess["credentials"] {
  let token = "";
  let readMs = Number.NEGATIVE_INFINITY;
  return async (isRefused) => {
    const nowMs = performance.now();
    if (isRefused || nowMs - readMs >= CREDENTIALS_KEPT_MS) {
      token = (await readFile(file, "utf8")).trim();
      readMs = nowMs;
    }
    return { token };
  };
}
