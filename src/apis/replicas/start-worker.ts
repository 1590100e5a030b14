/** Starts a worker of an API version: its environment, its process, its database row. Replicas and jobs both use it. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Capabilities } from "../../access/capabilities.ts";
import { parseDurationMs } from "../../contracts/config/durations.ts";
import { parseBytes, parseCpuMillis } from "../../contracts/config/quantities.ts";
import {
  apiLogDirectory,
  jobLogDirectory,
  notesDirectory,
  projectDirectory,
} from "../../contracts/data-layout.ts";
import { STARTUP_TIMEOUT } from "../../contracts/limits/configuration.ts";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../../contracts/limits/predictions.ts";
import type { Database } from "../../database/database.ts";
import { allWorkers, saveWorker, setJobOfWorker } from "../../database/worker-rows.ts";
import type { Engine, RunningWorker } from "../../engine/engine.ts";
import type { PythonEnvironments } from "../../engine/environments/python-environment.ts";
import type { Lifetime } from "../../engine/lifetime.ts";
import type { Compute } from "../../engine/scheduler/compute.ts";
import { removeFormerLogs } from "../../observe/log-files.ts";
import type { Init } from "../../protocol/messages.ts";
import type { Trees } from "../../state/trees.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { replicaConcurrency } from "./scaling-rules.ts";

const FINISH_MARGIN_MS = 5_000;

export interface StartWorkerDeps {
  db: Database;
  engine: Engine;
  environments: PythonEnvironments;
  dataDir: string;
  /** Whether this machine has GPUs. If so, a worker sees only those that it was given. */
  hasGpus: boolean;
  /** The files of deployed versions. */
  projects: Trees;
  /** The port of the listener on loopback where user code calls other APIs. */
  apiPort: number;
}

/** Throws EnvironmentError if the requirements cannot be installed, or the Python is missing. */
export async function startWorker(
  deps: StartWorkerDeps & { capabilities: Capabilities },
  version: ApiVersion,
  jobId: string | undefined,
  gpus: readonly string[],
): Promise<RunningWorker> {
  const { predictor } = version.config;
  const project = projectDirectory(deps.dataDir, version.project_id);
  // A replica that cannot start is tried again by itself, and says why. A job waits for a store.
  if (!(await deps.projects.fetch(version.project_id, jobId !== undefined)))
    throw new Error(`the files of ${version.name} are not in the state of the server: deploy it again`);
  const logs =
    jobId === undefined ? apiLogDirectory(deps.dataDir, version.name) : jobLogDirectory(deps.dataDir, jobId);
  const interpreter = await deps.environments.prepare(project, join(logs, "install.log"), predictor.python);
  const worker_id = `${jobId === undefined ? "r" : "b"}-${randomBytes(4).toString("hex")}`;
  await removeFormerLogs(
    logs,
    async () => new Set((await allWorkers(deps.db)).map((record) => record.worker_id)),
  );
  const { api_id, predictor_id, name } = version;
  try {
    const capability = deps.capabilities.give(worker_id, { name, predictor_id });
    const worker = await deps.engine.start({
      worker_id,
      project,
      python_path: predictor.python_path,
      env: predictor.env,
      apiUrl: `http://127.0.0.1:${deps.apiPort}/${capability.text}`,
      interpreter,
      logFile: join(logs, `${worker_id}.log`),
      memoryLimitBytes: memoryLimitOf(version),
      visibleGpus: deps.hasGpus ? gpus : undefined,
      isBackground: jobId !== undefined,
      ...(jobId === undefined ? {} : { noteFile: join(notesDirectory(deps.dataDir), `${worker_id}.note`) }),
    });
    await saveWorker(deps.db, {
      ...worker.identity,
      api_name: name,
      api_id,
      predictor_id,
      job_id: jobId ?? null,
      gpus: gpus.join(","),
      capability: capability.sha256,
      api_port: deps.apiPort,
    });
    // User code may call another API in `__init__`, so gateways must know the capability first.
    await capability.isKnown;
    return worker;
  } catch (error) {
    deps.capabilities.end(worker_id);
    throw error;
  }
}

/**
 * Lets a worker of a job go on with another job of its version. Resolves to the file that gets its output from now on.
 * The record names the new job before it gets a batch: after a kill, the batch in hand is this job's.
 */
export async function takeOverWorker(
  { db, dataDir }: Pick<StartWorkerDeps, "db" | "dataDir">,
  worker: RunningWorker,
  jobId: string,
): Promise<string> {
  const { worker_id } = worker.identity;
  const logFile = join(jobLogDirectory(dataDir, jobId), `${worker_id}.log`);
  worker.logTo(logFile);
  await setJobOfWorker(db, worker_id, jobId);
  return logFile;
}

/** The part of INIT that depends on the version. */
export function initOf(dataDir: string, version: ApiVersion): Omit<Init, "job_config" | "job_spec"> {
  const { predictor, monitoring } = version.config;
  const batching = predictor.server_side_batching;
  return {
    api_id: version.api_id,
    project: projectDirectory(dataDir, version.project_id),
    path: predictor.path,
    ...(predictor.python_path === undefined ? {} : { python_path: predictor.python_path }),
    api_config: version.configText,
    concurrency: Math.ceil(replicaConcurrency(version.config) / predictor.processes_per_replica),
    threads: predictor.threads_per_process,
    ...(batching === undefined
      ? {}
      : {
          batching: {
            max_batch_size: batching.max_batch_size,
            interval_ms: parseDurationMs(batching.batch_interval)!,
          },
        }),
    ...(monitoring?.model_type === undefined
      ? {}
      : { monitoring: { model_type: monitoring.model_type, key: monitoring.key } }),
    ...(predictor.max_requests === undefined ? {} : { max_requests: predictor.max_requests }),
    ...(predictor.reuse_worker === true ? { may_be_reused: true } : {}),
    ...(predictor.response === "text" ? { response: "text" as const } : {}),
  };
}

/** `predictor.timeout` in milliseconds, if it is set. */
export function timeoutMsOf(version: ApiVersion): number | undefined {
  const { timeout } = version.config.predictor;
  return timeout === undefined ? undefined : parseDurationMs(timeout);
}

/**
 * How long a draining replica may take if another one waits for that: as long as a request may, so that only streams
 * are cut off.
 */
export function finishMsOf(version: ApiVersion): number {
  return (timeoutMsOf(version) ?? PREDICTION_TIMEOUT_DEFAULT_MS) + FINISH_MARGIN_MS;
}

/** `predictor.startup_timeout`, `max_requests` and `max_age`. */
export function lifetimeOf(version: ApiVersion): Lifetime {
  const { startup_timeout: text = STARTUP_TIMEOUT, max_requests, max_age } = version.config.predictor;
  return {
    startup: { ms: parseDurationMs(text)!, text },
    maxRequests: max_requests,
    maxAgeMs: max_age === undefined ? undefined : parseDurationMs(max_age),
  };
}

/** The compute that one worker of this version reserves. `compute` is for a replica, whose processes share it. */
export function computeOf(version: ApiVersion): Compute {
  const { compute, predictor } = version.config;
  const processes = predictor.processes_per_replica;
  return {
    cpuMillis: Math.ceil(parseCpuMillis(compute.cpu)! / processes),
    memoryBytes: memoryLimitOf(version) ?? 0,
    gpus: compute.gpu / processes,
  };
}

/** One worker's share of `compute.mem` in bytes, if it is set. */
export function memoryLimitOf(version: ApiVersion): number | undefined {
  const { compute, predictor } = version.config;
  if (compute.mem === undefined) return undefined;
  return Math.floor(parseBytes(compute.mem)! / predictor.processes_per_replica);
}
