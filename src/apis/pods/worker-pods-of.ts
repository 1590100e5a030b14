/** The pods of an API's version, or of a job of it, as their objects describe them. Pure. */
import { STOP_GRACE_MS } from "../../contracts/limits/jobs.ts";
import type { JobPods, PodTemplate, WorkerPods } from "../../kubernetes/objects/worker-pods.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { computeOf, finishMsOf } from "../replicas/start-worker.ts";

/** What all workers of this server have in common. */
export interface PodSettings {
  namespace: string;
  /** The image of workers that name none. */
  image: string;
  /** Where pods reach this server, without a slash at its end. */
  url: string;
}

/** A pod stays for so long after it was asked to end; longer streams are cut off. */
const GRACE_SECONDS_MAX = 15 * 60;

/** `replicas`: as an API counts them. Each process of a replica is a pod. `extra`: so many pods more. */
export function workerPodsOf(
  version: ApiVersion,
  { replicas, extra = 0 }: { replicas: number; extra?: number },
  settings: PodSettings,
): WorkerPods {
  const { predictor, update_strategy } = version.config;
  const graceSeconds = Math.min(GRACE_SECONDS_MAX, Math.ceil(finishMsOf(version) / 1_000));
  return {
    ...templateOf(version, graceSeconds, settings),
    replicas: replicas * predictor.processes_per_replica + extra,
    extra,
    ...rolloutOf(update_strategy),
  };
}

/** As many pods as the submission asks for. */
export function jobPodsOf(
  version: ApiVersion,
  { job_id, workers }: { job_id: string; workers: number },
  settings: PodSettings,
): JobPods {
  const { queue } = version.config.compute;
  const template = templateOf(version, Math.ceil(STOP_GRACE_MS / 1_000), settings);
  return { ...template, jobId: job_id, parallelism: workers, queue };
}

function templateOf(version: ApiVersion, graceSeconds: number, settings: PodSettings): PodTemplate {
  const { name, predictor_id, project_id, config } = version;
  const { predictor, compute } = config;
  const { cpuMillis, memoryBytes, gpus } = computeOf(version);
  return {
    api: name,
    predictorId: predictor_id,
    namespace: settings.namespace,
    image: compute.image ?? settings.image,
    graceSeconds,
    cpuMillis,
    memoryBytes: memoryBytes === 0 ? undefined : memoryBytes,
    gpus,
    env: predictor.env,
    pythonPath: predictor.python_path,
    projectUrl: `${settings.url}/-/projects/${project_id}`,
    nodeSelector: compute.node_selector,
    tolerations: (compute.tolerations ?? []).map(({ toleration_seconds: tolerationSeconds, ...rest }) => {
      return tolerationSeconds === undefined ? rest : { ...rest, tolerationSeconds };
    }),
    serviceAccount: compute.service_account,
    secrets: compute.secrets ?? [],
  };
}

/** As on one machine, but old pods go only once new ones serve, unless the configuration says so. */
function rolloutOf(
  strategy: ApiVersion["config"]["update_strategy"],
): Pick<WorkerPods, "surge" | "unavailable"> {
  const surge = strategy?.max_surge ?? "25%";
  const unavailable = strategy?.max_unavailable ?? 0;
  // Kubernetes refuses a rollout that may neither add nor take away.
  return { surge: isNone(surge) && isNone(unavailable) ? 1 : surge, unavailable };
}

function isNone(setting: number | string): boolean {
  return setting === 0 || setting === "0%";
}
