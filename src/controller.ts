/**
 * The controller's process: builds its rooms, starts them in order, stops them in reverse. What one room needs of
 * another arrives here, as a function.
 */

import { Apis } from "./apis/apis.ts";
import { Autoscaling } from "./apis/autoscaling.ts";
import { sweepEnvironments } from "./apis/environment-sweep.ts";
import { removeCutOffUploads } from "./apis/project-store.ts";
import { ProjectSweep } from "./apis/project-sweep.ts";
import type { Replicas } from "./apis/replicas.ts";
import { Reports } from "./apis/reports.ts";
import { noteDirectory } from "./apis/start-worker.ts";
import { bootId } from "./base/process-identity.ts";
import { type Service, startInOrder, stopInReverse } from "./base/service.ts";
import { endFormerWorkers, type FormerWorkers } from "./batch/former-workers.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { ControlServer } from "./control/control-server.ts";
import { layGround } from "./controller-ground.ts";
import {
  applicationDeploy,
  buildApplications,
  buildAudit,
  buildCapabilities,
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
import { resolveRoots } from "./object-store/file-store.ts";
import { RuntimeWatch } from "./runtime-watch.ts";

const DRAIN_GRACE_MS = 10_000;

export interface Controller {
  /** `forGood`: replicas are drained too; otherwise they live on for the next controller. */
  stop(forGood: boolean): Promise<void>;
}

export async function startController(options: ControllerOptions): Promise<Controller> {
  const { dataDir } = options;
  const roots = await resolveRoots(options.localRoots, dataDir).catch((error: Error) => {
    throw new CannotStart("option_unusable", error.message, error);
  });
  const ground = await layGround(options);
  const { db, engine } = ground.workerDeps;
  await removeCutOffUploads(dataDir);
  const left = await endFormerWorkers(db, engine, noteDirectory(dataDir), bootId());
  const { services, replicas } = wireRooms(ground, left, roots);
  await startInOrder(services);
  return { stop: (forGood) => stopController(services, forGood ? replicas : undefined, ground.close) };
}

/** All rooms, and as services in the order of their start. */
function wireRooms(ground: Ground, left: FormerWorkers, roots: readonly string[]) {
  const { db, options } = ground;
  const { dataDir } = options;
  const routes = buildRoutes(ground, left.replicas);
  const capabilities = buildCapabilities(ground, routes, left.replicas);
  const removeLeftovers = (name: string) => apis.removeLeftovers(name);
  const publish = () => apis.publish();
  const replicas = buildReplicas(ground, capabilities, left.replicas, publish, removeLeftovers);
  const { log, workerDeps } = ground;
  const sweep = {
    db: workerDeps.db,
    log,
    environments: workerDeps.environments,
    keepMs: options.keepEnvironmentsMs,
  };
  const afterwards = () => sweepEnvironments(sweep);
  const projects = new ProjectSweep({ db: workerDeps.db, log, dataDir, afterwards });
  const autoscaling = new Autoscaling(replicas);
  const reports = new Reports(ground.workerDeps.db, ground.log);
  const { outbox, world } = buildWorld(ground, roots);
  const jobs = buildJobs(ground, capabilities, left.lostWorkers, world);
  const { python, pythonRuntime } = options;
  const stopJobsOf = (name: string) => jobs.stopJobsOf(name);
  const spread = async () => {
    await apis.publish();
    await routes.everywhere();
  };
  const keys = buildKeys(ground, spread);
  const keysOfRoutes = () => ({ forGateways: keys.forGateways(), isAny: keys.isAny });
  const apis: Apis = new Apis({
    ...{ db, dataDir, python, pythonRuntime, gpus: ground.account.total.gpus },
    pythons: ground.workerDeps.environments.pythons,
    deployApplication: (project, request) => applicationDeploy(applications)(project, request),
    projects,
    replicas,
    routes,
    stopJobsOf,
    keys: keysOfRoutes,
  });
  const applications = buildApplications(ground, apis, world);
  const audit = buildAudit(ground);
  const control = new ControlServer(
    options.controllerSocket,
    buildControl(ground, { apis, applications, jobs, keys, replicas, reports, routes, audit }),
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
    audit,
    internal,
    control,
    new RuntimeWatch({ log: ground.log, servers: [internal, control], replicas, apis }),
  ];
  return { services, replicas };
}

async function stopController(
  services: Service[],
  drain: Replicas | undefined,
  leave: () => Promise<void>,
): Promise<void> {
  await drain?.drainAll(DRAIN_GRACE_MS);
  await stopInReverse(services);
  await leave();
}
