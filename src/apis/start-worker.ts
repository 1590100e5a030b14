/** Starts a worker of an API version: its environment, its process, its record. Replicas and jobs come by the same road. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Capabilities } from "../access/capabilities.ts";
import { parseDurationMs } from "../contracts/apis.ts";
import { parseBytes, parseCpuMillis } from "../contracts/quantities.ts";
import type { Database } from "../database/database.ts";
import { allWorkers, saveWorker } from "../database/worker-records.ts";
import type { Compute } from "../engine/compute-account.ts";
import type { Engine, RunningWorker } from "../engine/engine.ts";
import type { PythonEnvironments } from "../engine/python-environment.ts";
import { removeFormerLogs } from "../observe/log-files.ts";
import type { Init } from "../protocol/messages.ts";
import type { ApiVersion } from "./api-store.ts";
import { projectDirectory } from "./deploy.ts";
import { replicaConcurrency } from "./scaling-rules.ts";

export interface StartWorkerDeps {
  db: Database;
  engine: Engine;
  environments: PythonEnvironments;
  dataDir: string;
  /** Whether this machine has GPUs: workers see only those that they were given then. */
  hasGpus: boolean;
  /** Of the listener where user code calls other APIs, on loopback. */
  apiPort: number;
}

/** EnvironmentError when the requirements cannot be installed, or the Python is not there. */
export async function startWorker(
  deps: StartWorkerDeps & { capabilities: Capabilities },
  version: ApiVersion,
  jobId: string | undefined,
  gpus: readonly string[],
): Promise<RunningWorker> {
  const { predictor } = version.config;
  const project = projectDirectory(deps.dataDir, version.project_id);
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
      ...(jobId === undefined ? {} : { noteFile: join(noteDirectory(deps.dataDir), `${worker_id}.note`) }),
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
    // Its `__init__` may call another API already.
    await capability.isKnown;
    return worker;
  } catch (error) {
    deps.capabilities.end(worker_id);
    throw error;
  }
}

/** The part of INIT that a version decides. */
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
    ...(predictor.response === "text" ? { response: "text" as const } : {}),
  };
}

/** `predictor.timeout` in milliseconds, where one was given. */
export function timeoutMsOf(version: ApiVersion): number | undefined {
  const { timeout } = version.config.predictor;
  return timeout === undefined ? undefined : parseDurationMs(timeout);
}

/** What one worker of this version takes of the machine's account: `compute` is a replica's, its processes share it. */
export function computeOf(version: ApiVersion): Compute {
  const { compute, predictor } = version.config;
  const processes = predictor.processes_per_replica;
  return {
    cpuMillis: Math.ceil(parseCpuMillis(compute.cpu)! / processes),
    memoryBytes: memoryLimitOf(version) ?? 0,
    gpus: compute.gpu / processes,
  };
}

/** A worker's part of `compute.mem` in bytes, where one was given. */
export function memoryLimitOf(version: ApiVersion): number | undefined {
  const { compute, predictor } = version.config;
  if (compute.mem === undefined) return undefined;
  return Math.floor(parseBytes(compute.mem)! / predictor.processes_per_replica);
}

/** The notes of batch workers. Not beside the sockets: a reboot would empty that directory. */
export function noteDirectory(dataDir: string): string {
  return join(dataDir, "notes");
}

export function apiLogDirectory(dataDir: string, apiName: string): string {
  return join(dataDir, "logs", "apis", apiName);
}

export function jobLogDirectory(dataDir: string, jobId: string): string {
  return join(dataDir, "logs", "jobs", jobId);
}
