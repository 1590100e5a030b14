/** What the objects of one real-time API are made of. The API's configuration is not known here. */
import type { Toleration } from "./placement.ts";

export interface WorkerPods {
  api: string;
  /** The version's id. Pods of another id are replaced. */
  predictorId: string;
  namespace: string;
  image: string;
  /** Pods: a worker each. */
  replicas: number;
  /** As Kubernetes takes them: a number, or a percentage. */
  surge: number | string;
  unavailable: number | string;
  /** How long requests in hand may take after SIGTERM, in seconds. */
  graceSeconds: number;
  cpuMillis: number;
  /** Undefined: no limit. */
  memoryBytes: number | undefined;
  gpus: number;
  /** Variables of user code. */
  env: Readonly<Record<string, string>>;
  pythonPath: string | undefined;
  /** Where the launcher fetches the project. */
  projectUrl: string;
  nodeSelector: Readonly<Record<string, string>> | undefined;
  tolerations: readonly Toleration[];
  serviceAccount: string | undefined;
  /** Names of Secrets whose keys are variables of user code. */
  secrets: readonly string[];
}

/** The port of the worker's protocol, and that of the launcher's health (docs/pods.md). */
export const WORKER_PORT = 8421;
export const HEALTH_PORT = 8422;

/** Files of an API's Secret. */
export interface WorkerSecret {
  token: string;
  cert: string;
  key: string;
  /** Who issued the certificate, and that of the server that gives the project. */
  authority: string;
}
