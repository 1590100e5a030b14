/**
 * The controller's process: builds its rooms, starts them in order, stops them in reverse. What one room needs of
 * another arrives here, as a function.
 */

import { rmSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { readOrMakeAdminToken } from "./access/admin-token.ts";
import { Keys } from "./access/keys.ts";
import { type ApiVersion, currentVersions, findVersion, hasPredictor } from "./apis/api-store.ts";
import { Apis } from "./apis/apis.ts";
import { Autoscaling } from "./apis/autoscaling.ts";
import { removeCutOffUploads } from "./apis/project-store.ts";
import { RoutePublisher } from "./apis/publish-routes.ts";
import { Replicas } from "./apis/replicas.ts";
import { Reports } from "./apis/reports.ts";
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
import { armKillPoint } from "./base/kill-points.ts";
import { type Log, openLog } from "./base/log.ts";
import { processStartTime, signalGroup } from "./base/process-identity.ts";
import { type Service, startInOrder, stopInReverse } from "./base/service.ts";
import type { Interrupted, JobDeps } from "./batch/job-deps.ts";
import { Jobs } from "./batch/jobs.ts";
import { Outbox } from "./batch/outbox.ts";
import { Queues } from "./batch/queues.ts";
import { Retention } from "./batch/retention.ts";
import { Sqs } from "./batch/sqs.ts";
import type { StoredKey } from "./contracts/keys.ts";
import { parseQueueName } from "./contracts/queues.ts";
import { controlApp, internalApp } from "./control/app.ts";
import { ControlServer } from "./control/control-server.ts";
import { type DataDirectory, lockDataDirectory, makeTemporaryDirectory } from "./database/data-directory.ts";
import type { Database } from "./database/database.ts";
import { allKeys, saveKey } from "./database/key-records.ts";
import { migrate, takeEpoch } from "./database/migrations.ts";
import { patientDatabase } from "./database/patient-database.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";
import { allWorkers, deleteWorker, type WorkerRecord } from "./database/worker-records.ts";
import { type Compute, ComputeAccount } from "./engine/compute-account.ts";
import { findGpus } from "./engine/gpus.ts";
import { LocalEngine } from "./engine/local-processes.ts";
import { PythonEnvironments } from "./engine/python-environment.ts";
import { resolveRoots } from "./object-store/file-store.ts";
import { openStores } from "./object-store/stores.ts";
import { appendAudit } from "./observe/audit.ts";
import { appendLogLine, LogRotation } from "./observe/log-files.ts";
import { readDeliveryNote } from "./protocol/delivery-note.ts";

/** A former controller whose parent has died needs this long to leave at most. */
const LOCK_WAIT_MS = 20_000;
const DRAIN_GRACE_MS = 10_000;
/** A worker with a call that nothing ends lets its neighbours finish for this long. */
const REPLACE_GRACE_MS = 60_000;

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
  version: string;
  killAt: string;
  /** Tokens of an issuer are taken: APIs need one, or a key, where they do not say otherwise. */
  takesTokens: boolean;
  /** What workers may take together. */
  compute: Omit<Compute, "gpus">;
  /** `--gpus`: which there are; empty is those that are found. */
  gpus: string;
  /** Milliseconds for which the data of ended jobs is kept: of those that succeeded, and of the rest. */
  keepMs: number;
  keepFailedMs: number;
  parentPid: number;
}

export interface Controller {
  /** `forGood`: replicas are drained too; otherwise they live on for the next controller. */
  stop(forGood: boolean): Promise<void>;
}

/** What all rooms stand on. */
interface Ground {
  options: ControllerOptions;
  log: Log;
  db: Database;
  /** Higher than that of every controller before. */
  epoch: number;
  workerDeps: StartWorkerDeps;
  account: ComputeAccount;
}

export async function startController(options: ControllerOptions): Promise<Controller> {
  const { dataDir } = options;
  const isAlive = (pid: number) => processStartTime(pid) !== undefined;
  const directory = await lockDataDirectory(dataDir, options.parentPid, LOCK_WAIT_MS, isAlive);
  const roots = await resolveRoots(options.localRoots, dataDir);
  const ground = await layGround(options);
  const { db, epoch } = ground;
  await removeCutOffUploads(dataDir);
  const left = await endBatchWorkers(db, await allWorkers(db));
  const routes = new RoutePublisher(options.routesFile, epoch);
  const replicas = buildReplicas(ground, left.replicas, () => apis.publish());
  const autoscaling = new Autoscaling(replicas);
  const reports = new Reports(ground.workerDeps.db, ground.log);
  const { outbox, world } = buildWorld(ground, roots);
  const jobs = buildJobs(ground, left.interrupted, world);
  const { python, pythonRuntime } = options;
  const stopJobsOf = (name: string) => jobs.stopJobsOf(name);
  const spread = async () => {
    await apis.publish();
    await routes.everywhere();
  };
  const keys = buildKeys(ground, spread);
  const keysOfRoutes = () => ({ forGateways: keys.forGateways(), isAny: keys.isAny });
  const apis: Apis = new Apis({
    db,
    dataDir,
    python,
    pythonRuntime,
    gpus: ground.account.total.gpus,
    replicas,
    routes,
    stopJobsOf,
    keys: keysOfRoutes,
  });
  const control = new ControlServer(
    options.controllerSocket,
    buildControl(ground, { apis, jobs, keys, replicas, reports }),
  );
  const internal = new ControlServer(
    options.internalSocket,
    buildInternal(replicas, autoscaling, reports, routes),
  );
  const services = [
    new LogRotation(() => [
      ...replicas.names.map((name) => apiLogDirectory(dataDir, name)),
      ...jobs.running.map((id) => jobLogDirectory(dataDir, id)),
    ]),
    keys,
    apis,
    replicas,
    autoscaling,
    reports,
    outbox,
    buildRetention(ground),
    jobs,
    internal,
    control,
  ];
  await startInOrder(services);
  return { stop: (forGood) => stopController(services, forGood ? replicas : undefined, db, directory) };
}

async function layGround(options: ControllerOptions): Promise<Ground> {
  const { dataDir, runtimeDir, pythonRuntime, serverEnv, python } = options;
  // nvidia-smi may take a second: beside the rest.
  const finding = findGpus(options.gpus, serverEnv.CUDA_VISIBLE_DEVICES);
  const db = openSqliteDatabase(join(dataDir, "quern.db"));
  await migrate(db);
  const engine = new LocalEngine({ runtimeDir, pythonRuntime, serverEnv });
  const environments = new PythonEnvironments({ root: join(dataDir, "environments"), python });
  const gpus = await finding;
  const log = openLog("controller");
  const patientDb = patientDatabase(db, {
    onWait: () => log.error("the disk of the data directory is full: waiting until there is room"),
    signal: new AbortController().signal,
  });
  const workerDeps = { db: patientDb, engine, environments, dataDir, hasGpus: gpus.length > 0 };
  const account = new ComputeAccount({ ...options.compute, gpus });
  return { options, log, db, epoch: await takeEpoch(db), workerDeps, account };
}

function buildReplicas(ground: Ground, orphans: WorkerRecord[], publish: () => Promise<void>): Replicas {
  const { db, epoch, log, workerDeps, account } = ground;
  const deps = {
    epoch,
    log,
    versions: () => currentVersions(db),
    room: (version: ApiVersion) => {
      const need = computeOf(version);
      return { workers: account.room(need), description: account.describe(need) };
    },
    start: async (version: ApiVersion) => {
      const grant = account.occupy(computeOf(version));
      if (grant === undefined) throw new Error(`no GPU is free: ${account.describe(computeOf(version))}`);
      const worker = await startWorker(workerDeps, version, undefined, grant.gpus).catch((error: Error) => {
        account.giveBack(grant);
        throw error;
      });
      void worker.exited.then(() => account.giveBack(grant));
      return worker;
    },
    adopt: (version: ApiVersion, record: WorkerRecord) => {
      const worker = workerDeps.engine.adopt(record, memoryLimitOf(version));
      if (worker === undefined) return undefined;
      const gpus = record.gpus.split(",").filter(Boolean);
      const grant = account.occupyAgain(computeOf(version), gpus);
      void worker.exited.then(() => account.giveBack(grant));
      return worker;
    },
    forget: (workerId: string) => deleteWorker(workerDeps.db, workerId),
    initOf: (version: ApiVersion) => initOf(workerDeps.dataDir, version),
    onChange: () =>
      void publish().catch((error: Error) => log.error({ err: error }, "routes could not be published")),
  };
  return new Replicas(deps, orphans);
}

function jobLogOf(dataDir: string): JobDeps["jobLog"] {
  return (jobId, line) => appendLogLine(join(jobLogDirectory(dataDir, jobId), "server.log"), line);
}

type World = Pick<JobDeps, "store" | "isQueueMissing" | "onLetters">;

/** What jobs reach beyond this machine: stores, and queues with their outbox. */
function buildWorld(
  { db, log, options }: Ground,
  roots: readonly string[],
): { outbox: Outbox; world: World } {
  const { dataDir, serverEnv } = options;
  const store = openStores({ roots, temporaryDirectory: makeTemporaryDirectory(dataDir), env: serverEnv });
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

function buildJobs(ground: Ground, interrupted: Interrupted[], world: World): Jobs {
  const { db, epoch, log, options, workerDeps, account } = ground;
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
    epoch,
    log,
    reach: armKillPoint(options.killAt),
    account,
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
    forgetWorker: (workerId) => deleteWorker(workerDeps.db, workerId),
    jobLog: jobLogOf(dataDir),
  };
  return new Jobs(deps, interrupted);
}

function buildRetention({ db, log, options }: Ground): Retention {
  const { dataDir, keepMs, keepFailedMs } = options;
  const logDirectory = (jobId: string) => jobLogDirectory(dataDir, jobId);
  return new Retention({ db, log, dataDir, logDirectory, keepMs, keepFailedMs });
}

function buildKeys({ db, options }: Ground, spread: () => Promise<void>): Keys {
  const store = {
    all: () => allKeys(db),
    save: (key: StoredKey) => saveKey(db, key),
  };
  const { dataDir, takesTokens } = options;
  return new Keys({ store, adminToken: readOrMakeAdminToken(dataDir), takesTokens, spread });
}

function buildControl(
  { db, log, options }: Ground,
  rooms: { apis: Apis; jobs: Jobs; keys: Keys; replicas: Replicas; reports: Reports },
): RequestListener {
  const { dataDir, version } = options;
  const app = controlApp({
    log,
    version,
    ...rooms,
    audit: (line) => appendAudit(join(dataDir, "logs", "audit.jsonl"), line),
    queues: new Queues(db),
    apiLogDirectory: (name) => apiLogDirectory(dataDir, name),
    jobLogDirectory: (jobId) => jobLogDirectory(dataDir, jobId),
    specOf: async (name, apiId) => (await findVersion(db, name, apiId))?.config ?? {},
  });
  return getRequestListener(app.fetch, { overrideGlobalObjects: false });
}

function buildInternal(
  replicas: Replicas,
  autoscaling: Autoscaling,
  reports: Reports,
  routes: RoutePublisher,
): RequestListener {
  const app = internalApp({
    snapshots: {
      current: () => routes.snapshot,
      subscribe: (gateway, listener) => routes.subscribe(gateway, listener),
      applied: (gateway, version) => routes.applied(gateway, version),
    },
    killReplica: (workerId) => replicas.kill(workerId),
    replaceReplica: (workerId) => replicas.replace(workerId, REPLACE_GRACE_MS),
    wakeApi: (name) => autoscaling.wake(name),
    report: async (report) => {
      autoscaling.report(report.gateway, report.in_flight);
      await reports.take(report);
    },
  });
  return getRequestListener(app.fetch, { overrideGlobalObjects: false });
}

async function stopController(
  services: Service[],
  drain: Replicas | undefined,
  db: Database,
  directory: DataDirectory,
): Promise<void> {
  await drain?.drainAll(DRAIN_GRACE_MS);
  await stopInReverse(services);
  await db.close();
  directory.release();
}

/**
 * Batch workers of a former controller stop after the batch in hand; we do not wait for that, because its result has
 * nobody to go to. Their notes tell which batches were interrupted.
 */
async function endBatchWorkers(
  db: Database,
  records: WorkerRecord[],
): Promise<{ replicas: WorkerRecord[]; interrupted: Interrupted[] }> {
  const interrupted: Interrupted[] = [];
  for (const record of records.filter(({ job_id }) => job_id !== null)) {
    if (processStartTime(record.pid) === record.process_start) signalGroup(record.pid, "SIGKILL");
    const note = readDeliveryNote(record.note);
    if (note?.busy) interrupted.push({ job_id: record.job_id!, batch_index: note.batch_index });
    rmSync(record.note, { force: true });
    rmSync(record.socket, { force: true });
    await deleteWorker(db, record.worker_id);
  }
  return { replicas: records.filter(({ job_id }) => job_id === null), interrupted };
}
