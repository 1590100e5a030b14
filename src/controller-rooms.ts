/** The controller's rooms, built one by one on their ground. What one needs of another is a function that is passed in. */

import { realpathSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { readOrMakeAdminToken } from "./access/admin-token.ts";
import { Capabilities } from "./access/capabilities.ts";
import { Keys } from "./access/keys.ts";
import { type ApiVersion, exactSpec, findVersion, hasPredictor, readDeployed } from "./apis/api-store.ts";
import type { Apis } from "./apis/apis.ts";
import type { Autoscaling } from "./apis/autoscaling.ts";
import type { DeployDeps } from "./apis/deploy.ts";
import { PlacedApis } from "./apis/placed-apis.ts";
import { RoutePublisher } from "./apis/publish-routes.ts";
import { Replicas } from "./apis/replicas.ts";
import type { Reports } from "./apis/reports.ts";
import {
  apiLogDirectory,
  computeOf,
  initOf,
  jobLogDirectory,
  memoryLimitOf,
  type StartWorkerDeps,
  startWorker,
  timeoutMsOf,
} from "./apis/start-worker.ts";
import { inBackground } from "./base/boundary.ts";
import { armKillPoint } from "./base/kill-points.ts";
import type { Log } from "./base/log.ts";
import type { JobDeps } from "./batch/job-deps.ts";
import { Jobs } from "./batch/jobs.ts";
import { Outbox } from "./batch/outbox.ts";
import { Queues } from "./batch/queues.ts";
import { Retention } from "./batch/retention.ts";
import { Solitude } from "./batch/solitude.ts";
import { Sqs } from "./batch/sqs.ts";
import type { ComputeShown } from "./contracts/answers.ts";
import type { StoredKey } from "./contracts/keys.ts";
import { parseQueueName } from "./contracts/queues.ts";
import type { CapabilityRoute, RefusedRoute } from "./contracts/routes.ts";
import { SecretNames } from "./contracts/secrets.ts";
import { controlApp, internalApp } from "./control/app.ts";
import { OpenStreams } from "./control/open-streams.ts";
import { ShownConfig } from "./control/shown-config.ts";
import { makeTemporaryDirectory } from "./database/data-directory.ts";
import type { Database } from "./database/database.ts";
import { allKeys, saveKey } from "./database/key-records.ts";
import { deleteWorker, type WorkerRecord } from "./database/worker-records.ts";
import type { Compute, ComputeAccount } from "./engine/compute-account.ts";
import { Applications } from "./legacy/applications.ts";
import { readApplication } from "./legacy/read-application.ts";
import { Workplace } from "./legacy/workplace.ts";
import { openStores } from "./object-store/stores.ts";
import { Audit } from "./observe/audit.ts";
import { appendLogLine } from "./observe/log-files.ts";
import { LoopDelayMeter } from "./observe/loop-delay.ts";

export interface ControllerOptions {
  dataDir: string;
  runtimeDir: string;
  controllerSocket: string;
  internalSocket: string;
  routesFile: string;
  pythonRuntime: string;
  python: string;
  localRoots: string[];
  serverEnv: NodeJS.ProcessEnv;
  /** The control group that we were given (engine/own-group.ts). */
  ownGroup: string | undefined;
  version: string;
  killAt: string;
  /** Tokens of an issuer are taken: APIs need one, or a key, where they do not say otherwise. */
  takesTokens: boolean;
  /** What workers may take together, and what the machine has. */
  compute: Omit<Compute, "gpus"> & { machine: Omit<Compute, "gpus"> };
  /** `--gpus`: which there are; empty is those that are found. */
  gpus: string;
  /** Names of configuration values that are hidden beside those of the list. */
  secretNames: string[];
  /** Milliseconds for which the data of ended jobs is kept: of those that succeeded, and of the rest. */
  keepMs: number;
  keepFailedMs: number;
  /** Milliseconds for which a Python environment is kept that nothing needs. */
  keepEnvironmentsMs: number;
  parentPid: number;
  /** Where gateways listen on loopback for calls from user code. */
  apiPort: number;
  /** `--control-listen` is given. */
  hasControlListener: boolean;
  /** Jobs that a copied data directory has paused go on. */
  continueJobs: boolean;
}

/** What all rooms stand on. */
export interface Ground {
  options: ControllerOptions;
  log: Log;
  db: Database;
  /** Higher than that of every controller before. */
  epoch: number;
  workerDeps: StartWorkerDeps;
  account: ComputeAccount;
  /** The database has known the data directory before: what it does not know there is waste. */
  knowsFiles: boolean;
}

/** `orphans`: the replicas that live on. */
export function buildCapabilities(
  { options }: Ground,
  routes: RoutePublisher,
  orphans: readonly WorkerRecord[],
): Capabilities {
  const workers = orphans.flatMap((record) =>
    capabilityRoutes([record]).map((route) => ({ worker_id: record.worker_id, route })),
  );
  const publish = (capabilities: CapabilityRoute[]) => routes.publishCapabilities(capabilities);
  const everywhere = () => routes.everywhere();
  return new Capabilities({ port: options.apiPort, publish, everywhere }, workers);
}

function capabilityRoutes(records: readonly WorkerRecord[]): CapabilityRoute[] {
  return records
    .filter(({ capability }) => capability !== "")
    .map(({ capability, api_name }) => ({ sha256: capability, api: api_name }));
}

/** A replica whose QUERN_API_URL has another port than ours is one of a former version: a new one takes its place. */
function withPortOf({ apiPort }: ControllerOptions, record: WorkerRecord): WorkerRecord {
  const isCurrent = record.capability === "" || record.api_port === apiPort;
  return isCurrent ? record : { ...record, predictor_id: "" };
}

async function forgetWorker(
  { workerDeps }: Ground,
  capabilities: Capabilities,
  workerId: string,
): Promise<void> {
  capabilities.end(workerId);
  await deleteWorker(workerDeps.db, workerId);
}

export function buildReplicas(
  ground: Ground,
  capabilities: Capabilities,
  orphans: WorkerRecord[],
  publish: () => Promise<void>,
  removeLeftovers: (name: string) => Promise<void>,
): Replicas {
  const { db, epoch, log, account } = ground;
  const workerDeps = { ...ground.workerDeps, capabilities };
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
    forget: (workerId: string) => forgetWorker(ground, capabilities, workerId),
    onDeletedGone: (name: string) =>
      inBackground(removeLeftovers(name), (error) =>
        log.error({ err: error, api: name }, "its log and files stay"),
      ),
    initOf: (version: ApiVersion) => initOf(workerDeps.dataDir, version),
    apiLog: (name: string, line: string) =>
      appendLogLine(join(apiLogDirectory(workerDeps.dataDir, name), "server.log"), line),
    onChange: () =>
      inBackground(publish(), (error) => log.error({ err: error }, "routes could not be published")),
  };
  return new Replicas(
    deps,
    orphans.map((record) => withPortOf(ground.options, record)),
  );
}

function jobLogOf(dataDir: string): JobDeps["jobLog"] {
  return (jobId, line) => appendLogLine(join(jobLogDirectory(dataDir, jobId), "server.log"), line);
}

type World = Pick<JobDeps, "store" | "isQueueMissing" | "onLetters">;

/** What jobs reach beyond this machine: stores, and queues with their outbox. */
export function buildWorld(
  { db, log, options }: Ground,
  roots: readonly string[],
): { outbox: Outbox; world: World } {
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
  return { outbox, world: { store, isQueueMissing, onLetters: () => outbox.poke() } };
}

export function buildJobs(
  ground: Ground,
  capabilities: Capabilities,
  lostWorkers: ReadonlyMap<string, number>,
  world: World,
): Jobs {
  const { db, epoch, log, options, account, knowsFiles } = ground;
  const workerDeps = { ...ground.workerDeps, capabilities };
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
    forgetWorker: (workerId) => forgetWorker(ground, capabilities, workerId),
    jobLog: jobLogOf(dataDir),
  };
  return new Jobs(deps, lostWorkers);
}

export function buildApplications(
  { log, options, workerDeps, account }: Ground,
  apis: Apis,
  world: World,
): Applications {
  const { dataDir } = options;
  const { db, engine, environments } = workerDeps;
  const placed = new PlacedApis(db, apis);
  const work = new Workplace({
    ...{ db, log, dataDir, engine, account, store: world.store },
    prepare: (project, logFile) => environments.prepare(project, logFile),
    serving: {
      place: (placement) => placed.place(placement),
      find: (name) => placed.find(name),
      remove: (name) => placed.remove(name),
      names: () => placed.names(),
      assertFree: (name, endpoint) => placed.assertFree(name, endpoint),
      logDirectory: (name) => apiLogDirectory(dataDir, name),
    },
  });
  return new Applications(work);
}

/** Deploys what an archive holds, where that is an application. */
export function applicationDeploy(applications: Applications): DeployDeps["deployApplication"] {
  return async ({ project_id, configText, directory }, { configFile, environment, force, dryRun }) => {
    const read = await readApplication({ text: configText, file: configFile, directory });
    if (read.kind === "none") return undefined;
    if (read.kind === "faulty") return { errors: read.errors };
    const application = { project_id, config_file: configFile, config_text: configText };
    const message = await applications.deploy(read.name, { application, environment, force, dryRun });
    return { name: read.name, message };
  };
}

export function buildRetention({ db, log, options }: Ground): Retention {
  const { dataDir, keepMs, keepFailedMs } = options;
  const logDirectory = (jobId: string) => jobLogDirectory(dataDir, jobId);
  return new Retention({ db, log, dataDir, logDirectory, keepMs, keepFailedMs });
}

/** `orphans`: the replicas that live on. */
export function buildRoutes(
  { options, epoch, log }: Ground,
  orphans: readonly WorkerRecord[],
): RoutePublisher {
  const onRefused = (refused: RefusedRoute) =>
    log.error(refused, "a route is not published: no gateway could read it");
  return new RoutePublisher(options.routesFile, epoch, onRefused, capabilityRoutes(orphans));
}

export function buildKeys({ db, options }: Ground, spread: () => Promise<void>): Keys {
  const store = {
    all: () => allKeys(db),
    save: (key: StoredKey) => saveKey(db, key),
  };
  const { dataDir, takesTokens } = options;
  return new Keys({ store, adminToken: readOrMakeAdminToken(dataDir), takesTokens, spread });
}

export function buildAudit({ options }: Ground): Audit {
  return new Audit(auditDirectory(options.dataDir));
}

function auditDirectory(dataDir: string): string {
  return join(dataDir, "logs");
}

export function buildControl(
  { db, log, options, workerDeps, account }: Ground,
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
  const { dataDir, version, hasControlListener } = options;
  const app = controlApp({
    log,
    version,
    hasControlListener,
    memoryLimits: workerDeps.engine.memoryLimits,
    compute: () => shownCompute(account, options.compute.machine),
    warnings: () => rooms.routes.warnings,
    ...rooms,
    streams: new OpenStreams(rooms.keys),
    auditDirectory: auditDirectory(dataDir),
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

/** A request that the bridge itself fails on has no answer: its client is cut off. */
function listenerOf(app: { fetch: Parameters<typeof getRequestListener>[0] }): RequestListener {
  const listen = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return (request, response) =>
    inBackground(listen(request, response), (error) => {
      response.destroy();
      throw error;
    });
}

export function buildInternal(
  { log }: Ground,
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
