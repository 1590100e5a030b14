/** Builds the controller's rooms one by one. If a room needs another, it gets a function. */

import { realpathSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { readOrMakeAdminToken } from "./access/admin-token.ts";
import { Capabilities } from "./access/capabilities.ts";
import { Keys } from "./access/keys.ts";
import type { Apis } from "./apis/apis.ts";
import type { DeployApplication } from "./apis/deploy/deploy.ts";
import { ManagedApis } from "./apis/managed-apis.ts";
import { RoutePublisher } from "./apis/publish-routes.ts";
import {
  type ApiVersion,
  exactSpec,
  findVersion,
  hasPredictor,
  readDeployed,
} from "./apis/records/api-rows.ts";
import type { Autoscaling } from "./apis/replicas/autoscaling.ts";
import { Replicas } from "./apis/replicas/replicas.ts";
import {
  computeOf,
  initOf,
  memoryLimitOf,
  type StartWorkerDeps,
  startWorker,
  timeoutMsOf,
} from "./apis/replicas/start-worker.ts";
import type { Reports } from "./apis/reports.ts";
import { inBackground } from "./base/boundary.ts";
import { armKillPoint } from "./base/kill-points.ts";
import type { Log } from "./base/log.ts";
import { Solitude } from "./batch/dispatch/solitude.ts";
import { Retention } from "./batch/end/retention.ts";
import type { JobDeps } from "./batch/job-deps.ts";
import { Jobs } from "./batch/jobs.ts";
import { Outbox } from "./batch/letters/outbox.ts";
import { Queues } from "./batch/letters/queues.ts";
import { Sqs } from "./batch/letters/sqs.ts";
import { apiLogDirectory, jobLogDirectory, logsDirectory, routesFile } from "./contracts/data-layout.ts";
import type { ComputeShown } from "./contracts/http/answers.ts";
import type { StoredKey } from "./contracts/keys.ts";
import { parseQueueName } from "./contracts/queues.ts";
import type { CapabilityRoute, RefusedRoute } from "./contracts/routes.ts";
import { SecretNames } from "./contracts/secrets.ts";
import { LISTS, OpenStreams } from "./control/answers/open-streams.ts";
import { ShownConfig } from "./control/answers/shown-config.ts";
import { controlApp, internalApp } from "./control/app.ts";
import { makeTemporaryDirectory } from "./database/data-directory.ts";
import type { Database } from "./database/database.ts";
import { allKeys, saveKey } from "./database/key-rows.ts";
import { deleteWorker, type WorkerRecord } from "./database/worker-rows.ts";
import type { Compute, ComputeAccount } from "./engine/compute-account.ts";
import { Applications } from "./legacy/applications.ts";
import { readApplication } from "./legacy/check/read-application.ts";
import { Workplace } from "./legacy/workplace.ts";
import { openStores } from "./object-store/backends/stores.ts";
import { Audit } from "./observe/audit.ts";
import { appendLogLine } from "./observe/log-files.ts";
import { LoopDelayMeter } from "./observe/loop-delay.ts";
import type { ChildOptions } from "./settings/child-options.ts";
import { version } from "./settings/installation.ts";

export type ControllerOptions = ChildOptions & { serverEnv: NodeJS.ProcessEnv };

/** The dependencies of all rooms. */
export interface Infrastructure {
  options: ControllerOptions;
  log: Log;
  db: Database;
  /** Higher than the epoch of every former controller. */
  epoch: number;
  workerDeps: StartWorkerDeps;
  account: ComputeAccount;
  /** The database belongs to this data directory. So files that it does not know can be removed. */
  knowsFiles: boolean;
}

/** `orphans` are the replicas that a former controller started. */
export function buildCapabilities(
  { options }: Infrastructure,
  routes: RoutePublisher,
  orphans: readonly WorkerRecord[],
): Capabilities {
  const workers = orphans.flatMap((record) =>
    capabilityRoutes([record]).map((route) => ({ worker_id: record.worker_id, route })),
  );
  const publish = (capabilities: CapabilityRoute[]) => routes.publishCapabilities(capabilities);
  const waitUntilApplied = () => routes.waitUntilApplied();
  return new Capabilities({ port: options.apiPort, publish, waitUntilApplied }, workers);
}

function capabilityRoutes(records: readonly WorkerRecord[]): CapabilityRoute[] {
  return records
    .filter(({ capability }) => capability !== "")
    .map(({ capability, api_name }) => ({ sha256: capability, api: api_name }));
}

/** A replica whose QUERN_API_URL has another port is treated as outdated, so a new one replaces it. */
function withPortOf({ apiPort }: ControllerOptions, record: WorkerRecord): WorkerRecord {
  const isCurrent = record.capability === "" || record.api_port === apiPort;
  return isCurrent ? record : { ...record, predictor_id: "" };
}

async function forgetWorker(
  { workerDeps }: Infrastructure,
  capabilities: Capabilities,
  workerId: string,
): Promise<void> {
  capabilities.end(workerId);
  await deleteWorker(workerDeps.db, workerId);
}

export function buildReplicas(
  infrastructure: Infrastructure,
  capabilities: Capabilities,
  orphans: WorkerRecord[],
): Replicas {
  const { db, epoch, log, account } = infrastructure;
  const workerDeps = { ...infrastructure.workerDeps, capabilities };
  const deps = {
    epoch,
    log,
    versions: async () => {
      const { versions, unreadable } = await readDeployed(db);
      return { versions: versions.filter(hasPredictor), unreadable: unreadable.map(({ name }) => name) };
    },
    account,
    computeOf,
    start: (version: ApiVersion, gpus: readonly string[]) =>
      startWorker(workerDeps, version, undefined, gpus),
    adopt: (version: ApiVersion, record: WorkerRecord) =>
      workerDeps.engine.adopt(record, memoryLimitOf(version)),
    end: (record: WorkerRecord) => workerDeps.engine.end(record),
    forget: (workerId: string) => forgetWorker(infrastructure, capabilities, workerId),
    initOf: (version: ApiVersion) => initOf(workerDeps.dataDir, version),
    apiLog: (name: string, line: string) =>
      appendLogLine(join(apiLogDirectory(workerDeps.dataDir, name), "server.log"), line),
  };
  return new Replicas(
    deps,
    orphans.map((record) => withPortOf(infrastructure.options, record)),
  );
}

function jobLogOf(dataDir: string): JobDeps["jobLog"] {
  return (jobId, line) => appendLogLine(join(jobLogDirectory(dataDir, jobId), "server.log"), line);
}

type StoresAndQueues = Pick<JobDeps, "store" | "isQueueMissing" | "onLetters">;

/** Builds the connections of jobs beyond this machine: stores, and queues with their outbox. */
export function buildStoresAndQueues(
  { db, log, options }: Infrastructure,
  roots: readonly string[],
): { outbox: Outbox; world: StoresAndQueues } {
  const { dataDir, serverEnv } = options;
  const store = openStores({
    ...{ roots, dataDir: realpathSync(dataDir), env: serverEnv },
    temporaryDirectory: makeTemporaryDirectory(dataDir),
  });
  const sqs = new Sqs();
  const outbox = new Outbox({
    db,
    log,
    send: (queue, letters) => sqs.send(queue, letters),
    jobLog: jobLogOf(dataDir),
  });
  const isQueueMissing = async (queue: string) => {
    const name = parseQueueName(queue);
    return name?.kind === "sqs" && (await sqs.isMissing(name));
  };
  return { outbox, world: { store, isQueueMissing, onLetters: () => outbox.wake() } };
}

export function buildJobs(
  infrastructure: Infrastructure,
  capabilities: Capabilities,
  lostWorkers: ReadonlyMap<string, number>,
  world: StoresAndQueues,
): Jobs {
  const { db, epoch, log, options, account, knowsFiles } = infrastructure;
  const workerDeps = { ...infrastructure.workerDeps, capabilities };
  const { dataDir } = options;
  const findApiVersion = async (name: string, apiId: string) => {
    const version = await findVersion(db, name, apiId);
    if (version === undefined || !hasPredictor(version))
      throw new Error(`version ${apiId} of ${name} is gone`);
    return version;
  };
  const deps: JobDeps = {
    ...world,
    db,
    dataDir,
    knowsFiles,
    epoch,
    log,
    reach: armKillPoint(options.killAt),
    account,
    solitude: new Solitude(),
    findApi: async (name, apiId) => {
      const version = await findApiVersion(name, apiId);
      return {
        api_id: apiId,
        init: initOf(dataDir, version),
        timeoutMs: timeoutMsOf(version),
        compute: computeOf(version),
      };
    },
    startWorker: async (name, apiId, jobId, gpus) =>
      startWorker(workerDeps, await findApiVersion(name, apiId), jobId, gpus),
    forgetWorker: (workerId) => forgetWorker(infrastructure, capabilities, workerId),
    jobLog: jobLogOf(dataDir),
  };
  return new Jobs(deps, lostWorkers);
}

export function buildApplications(
  { log, options, workerDeps, account }: Infrastructure,
  apis: Apis,
  world: StoresAndQueues,
): Applications {
  const { dataDir } = options;
  const { db, engine, environments } = workerDeps;
  const managed = new ManagedApis(db, apis);
  const work = new Workplace({
    ...{ db, log, dataDir, engine, account, store: world.store },
    prepare: (project, logFile) => environments.prepare(project, logFile),
    serving: {
      place: (placement) => managed.place(placement),
      find: (name) => managed.find(name),
      remove: (name) => managed.remove(name),
      names: () => managed.names(),
      assertFree: (name, endpoint) => managed.assertFree(name, endpoint),
      logDirectory: (name) => apiLogDirectory(dataDir, name),
    },
  });
  return new Applications(work);
}

/** Deploys an archive if it holds an application. */
export function applicationDeploy(applications: Applications): DeployApplication {
  return async ({ project_id, configText, directory }, { configFile, environment, force, dryRun }) => {
    const read = await readApplication({ text: configText, file: configFile, directory });
    if (read.kind === "none") return undefined;
    if (read.kind === "faulty") return { errors: read.errors };
    const application = { project_id, config_file: configFile, config_text: configText };
    const message = await applications.deploy(read.name, { application, environment, force, dryRun });
    return { name: read.name, message };
  };
}

export function buildRetention({ db, log, options }: Infrastructure): Retention {
  const { dataDir, keepJobs: keepMs, keepFailedJobs: keepFailedMs } = options;
  const logDirectory = (jobId: string) => jobLogDirectory(dataDir, jobId);
  return new Retention({ db, log, dataDir, logDirectory, keepMs, keepFailedMs });
}

/** `orphans` are the replicas that a former controller started. */
export function buildRoutes(
  { options, epoch, log }: Infrastructure,
  orphans: readonly WorkerRecord[],
): RoutePublisher {
  const onRefused = (refused: RefusedRoute) =>
    log.error(refused, "a route is not published: no gateway could read it");
  return new RoutePublisher(routesFile(options.dataDir), epoch, onRefused, capabilityRoutes(orphans));
}

export function buildKeys({ db, options }: Infrastructure): Keys {
  const store = {
    all: () => allKeys(db),
    save: (key: StoredKey) => saveKey(db, key),
  };
  const { dataDir, jwt, sigv4 } = options;
  const takesTokens = jwt !== undefined || sigv4 !== undefined;
  return new Keys({ store, adminToken: readOrMakeAdminToken(dataDir), takesTokens });
}

export function buildAudit({ options }: Infrastructure): Audit {
  return new Audit(logsDirectory(options.dataDir));
}

export function buildControl(
  { db, log, options, workerDeps, account }: Infrastructure,
  rooms: {
    apis: Apis;
    applications: Applications;
    jobs: Jobs;
    keys: Keys;
    replicas: Replicas;
    reports: Reports;
    routes: RoutePublisher;
    audit: Audit;
  },
): RequestListener {
  const { dataDir, controlListen, machine } = options;
  const app = controlApp({
    log,
    version: version(),
    hasControlListener: controlListen !== undefined,
    memoryLimits: workerDeps.engine.memoryLimits,
    compute: () => shownCompute(account, machine),
    warnings: () => rooms.routes.warnings,
    ...rooms,
    streams: new OpenStreams(rooms.keys),
    lists: new OpenStreams(rooms.keys, LISTS),
    auditDirectory: logsDirectory(dataDir),
    loop: new LoopDelayMeter(() => rooms.jobs.isBusy),
    queues: new Queues(db),
    shown: new ShownConfig(rooms.keys, new SecretNames(options.secretNames)),
    apiLogDirectory: (name) => apiLogDirectory(dataDir, name),
    jobLogDirectory: (jobId) => jobLogDirectory(dataDir, jobId),
    specOf: async (name, apiId) => {
      const version = await findVersion(db, name, apiId);
      return version === undefined ? {} : exactSpec(version);
    },
  });
  return listenerOf(app);
}

function shownCompute({ total, available }: ComputeAccount, machine: Omit<Compute, "gpus">): ComputeShown {
  const part = (name: keyof Compute, unit: number) => ({
    total: total[name] / unit,
    free: Math.max(0, available[name]) / unit,
  });
  return {
    cpus: { ...part("cpuMillis", 1000), machine: machine.cpuMillis / 1000 },
    memory_bytes: { ...part("memoryBytes", 1), machine: machine.memoryBytes },
    gpus: part("gpus", 1),
  };
}

/** If the HTTP bridge itself fails, there is no response, and the client's connection is closed. */
function listenerOf(app: { fetch: Parameters<typeof getRequestListener>[0] }): RequestListener {
  const listen = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return (request, response) =>
    inBackground(listen(request, response), (error) => {
      response.destroy();
      throw error;
    });
}

export function buildInternal(
  { log }: Infrastructure,
  replicas: Replicas,
  autoscaling: Autoscaling,
  reports: Reports,
  routes: RoutePublisher,
): RequestListener {
  const app = internalApp({
    snapshots: {
      current: () => routes.snapshot,
      subscribe: (gateway, listener) => routes.subscribe(gateway, listener),
      applied: (gateway, stamp, refused) => routes.applied(gateway, stamp, refused),
    },
    killReplica: (workerId) => replicas.kill(workerId),
    replaceReplica: (workerId) => replicas.replace(workerId),
    wakeApi: (name) => autoscaling.wake(name),
    report: async ({ report, refused }) => {
      for (const why of refused) log.error({ why }, "an API's numbers could not be read, and were left out");
      autoscaling.report(report.gateway, new Map(report.apis.map((api) => [api.name, api.in_flight])));
      await reports.take(report);
    },
  });
  return listenerOf(app);
}
