/**
 * The controller's process: builds its rooms, starts them in order, stops them in reverse. What one room needs of
 * another arrives here, as a function.
 */
import { createServer } from "node:http";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { rmSync } from "node:fs";
import { getRequestListener } from "@hono/node-server";
import { readOrMakeAdminToken } from "./access/admin-token.ts";
import { Apis } from "./apis/apis.ts";
import { currentVersions, findVersion } from "./apis/api-store.ts";
import { RoutePublisher } from "./apis/publish-routes.ts";
import { Replicas } from "./apis/replicas.ts";
import { apiLogDirectory, cpusOf, forgetWorker, initOf, jobLogDirectory, startWorker, timeoutMsOf } from "./apis/start-worker.ts";
import { armKillPoint } from "./base/kill-points.ts";
import { openLog } from "./base/log.ts";
import { processStartTime, signalGroup } from "./base/process-identity.ts";
import { type Service, startInOrder, stopInReverse } from "./base/service.ts";
import type { Interrupted } from "./batch/job-deps.ts";
import { Jobs } from "./batch/jobs.ts";
import { controlApp } from "./control/app.ts";
import type { Database } from "./database/database.ts";
import { type DataDirectory, lockDataDirectory } from "./database/data-directory.ts";
import { migrate, takeEpoch } from "./database/migrations.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";
import { allWorkers, type WorkerRecord } from "./database/worker-records.ts";
import { LocalEngine } from "./engine/local-processes.ts";
import { PythonEnvironments } from "./engine/python-environment.ts";
import { FileStore, resolveRoots } from "./object-store/file-store.ts";
import { appendLogLine, LogRotation } from "./observe/log-files.ts";
import { readDeliveryNote } from "./protocol/delivery-note.ts";

/** A former controller whose parent has died needs this long to leave at most. */
const LOCK_WAIT_MS = 20_000;
const DRAIN_GRACE_MS = 10_000;

export interface ControllerOptions {
  dataDir: string;
  runtimeDir: string;
  controllerSocket: string;
  routesFile: string;
  pythonRuntime: string;
  python: string;
  localRoots: string[];
  serverEnv: NodeJS.ProcessEnv;
  version: string;
  killAt: string;
  parentPid: number;
}

export interface Controller {
  /** `forGood`: replicas are drained too; otherwise they live on for the next controller. */
  stop(forGood: boolean): Promise<void>;
}

export async function startController(options: ControllerOptions): Promise<Controller> {
  const { dataDir } = options;
  const log = openLog("controller");
  const directory = await lockDataDirectory(dataDir, options.parentPid, LOCK_WAIT_MS, (pid) => processStartTime(pid) !== undefined);
  const db = openSqliteDatabase(join(dataDir, "quern.db"));
  await migrate(db);
  const epoch = await takeEpoch(db);
  const left = await endBatchWorkers(db, await allWorkers(db));
  const roots = await resolveRoots(options.localRoots, dataDir);
  const engine = new LocalEngine({ runtimeDir: options.runtimeDir, pythonRuntime: options.pythonRuntime, serverEnv: options.serverEnv });
  const environments = new PythonEnvironments({ root: join(dataDir, "environments"), python: options.python });
  const workerDeps = { db, engine, environments, dataDir };
  const routes = new RoutePublisher(options.routesFile, epoch);
  const findApiVersion = async (name: string, apiId: string) => {
    const version = await findVersion(db, name, apiId);
    if (version === undefined) throw new Error(`version ${apiId} of ${name} is gone`);
    return version;
  };
  const replicas = new Replicas(
    {
      engine,
      epoch,
      log,
      versions: () => currentVersions(db),
      start: (version) => startWorker(workerDeps, version, undefined),
      forget: (workerId) => forgetWorker(workerDeps, workerId),
      initOf: (version) => initOf(dataDir, version),
      onChange: () => void apis.publish().catch((error: Error) => log.error({ err: error }, "routes could not be published")),
    },
    left.replicas,
  );
  const jobs = new Jobs(
    {
      db,
      store: new FileStore(roots),
      dataDir,
      epoch,
      log,
      reach: armKillPoint(options.killAt),
      findApi: async (name, apiId) => {
        const version = await findApiVersion(name, apiId);
        return { api_id: apiId, init: initOf(dataDir, version), timeoutMs: timeoutMsOf(version), cpus: cpusOf(version) };
      },
      machineCpus: availableParallelism(),
      startWorker: async (name, apiId, jobId) => startWorker(workerDeps, await findApiVersion(name, apiId), jobId),
      forgetWorker: (workerId) => forgetWorker(workerDeps, workerId),
      jobLog: (jobId, line) => appendLogLine(join(jobLogDirectory(dataDir, jobId), "server.log"), line),
    },
    left.interrupted,
  );
  const apis: Apis = new Apis({
    db,
    dataDir,
    python: options.python,
    pythonRuntime: options.pythonRuntime,
    replicas,
    routes,
    stopJobsOf: (name) => jobs.stopJobsOf(name),
  });
  const app = controlApp({
    log,
    version: options.version,
    adminToken: readOrMakeAdminToken(dataDir),
    apis,
    jobs,
    apiLogDirectory: (name) => apiLogDirectory(dataDir, name),
    jobLogDirectory: (jobId) => jobLogDirectory(dataDir, jobId),
    specOf: async (name, apiId) => (await findVersion(db, name, apiId))?.config ?? {},
    snapshots: { current: () => routes.snapshot, subscribe: (listener) => routes.subscribe(listener) },
    killReplica: (workerId) => replicas.kill(workerId),
  });
  const services = [new LogRotation(join(dataDir, "logs")), apis, replicas, jobs, new ControlServer(options.controllerSocket, getRequestListener(app.fetch, { overrideGlobalObjects: false }))];
  await startInOrder(services);
  return { stop: (forGood) => stopController(services, forGood ? replicas : undefined, db, directory) };
}

async function stopController(services: Service[], drain: Replicas | undefined, db: Database, directory: DataDirectory): Promise<void> {
  await drain?.drainAll(DRAIN_GRACE_MS);
  await stopInReverse(services);
  await db.close();
  directory.release();
}

/**
 * Batch workers of a former controller stop after the batch in hand; we do not wait for that, because its result has
 * nobody to go to. Their notes tell which batches were interrupted.
 */
async function endBatchWorkers(db: Database, records: WorkerRecord[]): Promise<{ replicas: WorkerRecord[]; interrupted: Interrupted[] }> {
  const interrupted: Interrupted[] = [];
  for (const record of records.filter(({ job_id }) => job_id !== null)) {
    if (processStartTime(record.pid) === record.process_start) signalGroup(record.pid, "SIGKILL");
    const note = readDeliveryNote(record.note);
    if (note?.busy) interrupted.push({ job_id: record.job_id!, batch_index: note.batch_index });
    rmSync(record.note, { force: true });
    rmSync(record.socket, { force: true });
    await forgetWorker({ db }, record.worker_id);
  }
  return { replicas: records.filter(({ job_id }) => job_id === null), interrupted };
}

class ControlServer implements Service {
  private readonly socket: string;
  private readonly server: ReturnType<typeof createServer>;

  constructor(socket: string, listener: Parameters<typeof createServer>[1]) {
    this.socket = socket;
    this.server = createServer({ requestTimeout: 0 }, listener);
  }

  async start(): Promise<void> {
    rmSync(this.socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject).listen(this.socket, resolve);
    });
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }
}
