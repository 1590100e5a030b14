/**
 * The controller's process: builds its rooms, starts them in order, stops them in reverse. What one room needs of
 * another arrives here, as a function.
 */

import { join } from "node:path";
import { Apis } from "./apis/apis.ts";
import { Autoscaling } from "./apis/autoscaling.ts";
import { removeCutOffUploads } from "./apis/project-store.ts";
import { ProjectSweep } from "./apis/project-sweep.ts";
import type { Replicas } from "./apis/replicas.ts";
import { Reports } from "./apis/reports.ts";
import { noteDirectory } from "./apis/start-worker.ts";
import { describeShortage } from "./base/disk-full.ts";
import { openLog } from "./base/log.ts";
import { bootId, processStartTime } from "./base/process-identity.ts";
import { type Service, startInOrder, stopInReverse } from "./base/service.ts";
import { endFormerWorkers } from "./batch/former-workers.ts";
import { ControlServer } from "./control/control-server.ts";
import {
  applicationDeploy,
  buildApplications,
  buildControl,
  buildInternal,
  buildJobs,
  buildKeys,
  buildReplicas,
  buildRetention,
  buildRoutes,
  buildWorld,
  type ControllerOptions,
  type Ground,
} from "./controller-rooms.ts";
import { type DataDirectory, lockDataDirectory } from "./database/data-directory.ts";
import type { Database } from "./database/database.ts";
import { migrate, takeEpoch } from "./database/migrations.ts";
import { patientDatabase } from "./database/patient-database.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";
import { ComputeAccount } from "./engine/compute-account.ts";
import { findGpus } from "./engine/gpus.ts";
import { LocalEngine } from "./engine/local-processes.ts";
import { PythonEnvironments } from "./engine/python-environment.ts";
import { resolveRoots } from "./object-store/file-store.ts";
import { watchLog } from "./observe/log-watch.ts";

/** A former controller whose parent has died needs this long to leave at most. */
const LOCK_WAIT_MS = 20_000;
const DRAIN_GRACE_MS = 10_000;

export interface Controller {
  /** `forGood`: replicas are drained too; otherwise they live on for the next controller. */
  stop(forGood: boolean): Promise<void>;
}

export async function startController(options: ControllerOptions): Promise<Controller> {
  const { dataDir } = options;
  const isAlive = (pid: number) => processStartTime(pid) !== undefined;
  const directory = await lockDataDirectory(dataDir, options.parentPid, LOCK_WAIT_MS, isAlive);
  const roots = await resolveRoots(options.localRoots, dataDir);
  const ground = await layGround(options);
  const { db } = ground;
  await removeCutOffUploads(dataDir);
  const left = await endFormerWorkers(db, ground.workerDeps.engine, noteDirectory(dataDir), bootId());
  const routes = buildRoutes(ground);
  const removeLeftovers = (name: string) =>
    void apis
      .removeLeftovers(name)
      .catch((error: Error) => ground.log.error({ err: error }, "leftovers stay"));
  const replicas = buildReplicas(ground, left.replicas, () => apis.publish(), removeLeftovers);
  const projects = new ProjectSweep({ db: ground.workerDeps.db, log: ground.log, dataDir });
  const autoscaling = new Autoscaling(replicas);
  const reports = new Reports(ground.workerDeps.db, ground.log);
  const { outbox, world } = buildWorld(ground, roots);
  const jobs = buildJobs(ground, left.lostWorkers, world);
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
    deployApplication: (project, request) => applicationDeploy(applications)(project, request),
    projects,
    replicas,
    routes,
    stopJobsOf,
    keys: keysOfRoutes,
  });
  const applications = buildApplications(ground, apis, world);
  const control = new ControlServer(
    options.controllerSocket,
    buildControl(ground, { apis, applications, jobs, keys, replicas, reports, routes }),
  );
  const internal = new ControlServer(
    options.internalSocket,
    buildInternal(ground, replicas, autoscaling, reports, routes),
  );
  const services = [
    ground.workerDeps.environments,
    keys,
    apis,
    replicas,
    autoscaling,
    reports,
    outbox,
    buildRetention(ground),
    projects,
    jobs,
    applications,
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
  const engine = new LocalEngine({
    runtimeDir,
    pythonRuntime,
    serverEnv,
    watchLog,
    ownGroup: options.ownGroup,
  });
  const environments = new PythonEnvironments({ root: join(dataDir, "environments"), python, serverEnv });
  const gpus = await finding;
  const log = openLog("controller");
  const patientDb = patientDatabase(db, {
    onWait: (error) => log.error(`${describeShortage(error)}: waiting until there is room`),
    signal: new AbortController().signal,
  });
  const workerDeps = { db: patientDb, engine, environments, dataDir, hasGpus: gpus.length > 0 };
  const account = new ComputeAccount({ ...options.compute, gpus });
  return { options, log, db, epoch: await takeEpoch(db), workerDeps, account };
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
