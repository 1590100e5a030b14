/** What the objects of one real-time API, or of one job, are made of. The configuration is not known here. */
import type { Toleration } from "./placement.ts";

/** What all pods with a worker have. */
export interface PodTemplate {
  api: string;
  /** The version's id. */
  predictorId: string;
  namespace: string;
  image: string;
  /** How long requests, or the batch, in hand may take after SIGTERM, in seconds. */
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

/** The pods of a real-time API. Those of another version are replaced. */
export interface WorkerPods extends PodTemplate {
  /** Pods: a worker each. */
  replicas: number;
  /** So many of them are there only until they have replaced others. The default is 0. */
  extra?: number;
  /** As Kubernetes takes them: a number, or a percentage. */
  surge: number | string;
  unavailable: number | string;
}

/** The pods of a job. */
export interface JobPods extends PodTemplate {
  jobId: string;
  /** Pods: a worker each. */
  parallelism: number;
  /** The queue of Kueue that admits the Job; undefined: none. */
  queue: string | undefined;
}

/** The port of the worker's protocol, and that of the launcher's health (docs/pods.md). */
export const WORKER_PORT = 8421;
export const HEALTH_PORT = 8422;

/** Files of the Secret of an API or a job. */
export interface WorkerSecret {
  token: string;
  cert: string;
  key: string;
  /** Who issued the certificate, and that of the server that gives the project. */
  authority: string;
}
