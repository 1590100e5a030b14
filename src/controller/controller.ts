/**
 * The controller's process: builds its rooms, starts them in order, and stops them in reverse order. If a room needs
 * another, it gets a function here.
 */

import { Apis } from "../apis/apis.ts";
import { InstallationWatch } from "../apis/installation-watch.ts";
import { removeCutOffUploads } from "../apis/projects/project-store.ts";
import { ProjectSweep } from "../apis/projects/project-sweep.ts";
import type { RoutePublisher } from "../apis/publish-routes.ts";
import { Autoscaling } from "../apis/replicas/autoscaling.ts";
import { sweepEnvironments } from "../apis/replicas/environment-sweep.ts";
import { Reports } from "../apis/reports.ts";
import type { ApiReplicas } from "../apis/serving/api-replicas.ts";
import { servedAlone } from "../apis/serving/served-alone.ts";
import { removeLeftBackups } from "../backup/take-backup.ts";
import { inBackground } from "../base/boundary.ts";
import { bootId } from "../base/process-identity.ts";
import { type Service, startInOrder, stopInReverse } from "../base/service.ts";
import { askToForget } from "../batch/end/forget-job.ts";
import { endFormerWorkers, type FormerWorkers } from "../batch/workers/former-workers.ts";
import { CannotStart } from "../contracts/cannot-start.ts";
import { controllerSocket, internalSocket, notesDirectory } from "../contracts/data-layout.ts";
import { ControlServer } from "../control/control-server.ts";
import { TrafficSamples } from "../control/explain/traffic-samples.ts";
import { deleteWorker, type WorkerRecord } from "../database/worker-rows.ts";
import type { ActivePod } from "../kubernetes/active-pod.ts";
import { boundResponses } from "../object-store/bound-responses.ts";
import { type LocalRoot, resolveRoots } from "../object-store/files/allowed-paths.ts";
import { pythonRuntimeDir } from "../settings/installation.ts";
import { applicationDeploy, buildApplications } from "./build-applications.ts";
import {
  buildAudit,
  buildControl,
  buildInternal,
  buildKeys,
  buildKeyUse,
  buildSessions,
} from "./build-control.ts";
import { buildJobs, buildRetention, buildStoresAndQueues } from "./build-jobs.ts";
import { buildPodJobs, buildPodReplicas, openActivePod, openCluster } from "./build-pods.ts";
import { buildCapabilities, buildReplicas, buildRoutes } from "./build-replicas.ts";
import { buildSeries } from "./build-series.ts";
import { buildStateServices } from "./build-state.ts";
import { type ControllerOptions, type Infrastructure, openInfrastructure } from "./infrastructure.ts";
import { RuntimeWatch } from "./runtime-watch.ts";
import { assertStateApart } from "./settle-state.ts";

const DRAIN_GRACE_MS = 10_000;
/** A stop that takes so long waits for something else, such as disk space. No worker stays after it. */
const KILL_ALL_MS = 15_000;

export interface Controller {
  /** `forGood`: replicas are drained too. Otherwise they keep running for the next controller. */
  stop(forGood: boolean): Promise<void>;
}

export async function startController(options: ControllerOptions): Promise<Controller> {
  const { dataDir } = options;
  boundResponses();
  const roots = await resolveRoots(options.allowLocalRoot, dataDir).catch((error: Error) => {
    throw new CannotStart("option_unusable", error.message, error);
  });
  assertStateApart(options, roots);
  const activePod = openActivePod(options);
  const infrastructure = await openInfrastructure({
    ...options,
    onStandby: (active) => {
      activePod?.leave();
      options.onStandby(active);
    },
  });
  const { db, engine } = infrastructure.workerDeps;
  await removeCutOffUploads(dataDir);
  await removeLeftBackups(dataDir);
  const left = await endFormerWorkers(db, engine, notesDirectory(dataDir), bootId());
  if (options.engine === "kubernetes") await endReplicas(infrastructure, left.replicas);
  const { services, replicas, routes } = buildServices(infrastructure, left, roots);
  await startInOrder(services);
  if (activePod !== undefined) inBackground(takeRequests(activePod, infrastructure, routes));
  return {
    stop: (forGood) => {
      infrastructure.leaving.abort();
      activePod?.stop();
      if (forGood) setTimeout(() => engine.killAll(), KILL_ALL_MS).unref();
      return stopController(services, forGood ? replicas : undefined, infrastructure.close);
    },
  };
}

/** Builds all rooms, and lists them as services in the order of their start. Long: some lines for each room. */
function buildServices(infrastructure: Infrastructure, left: FormerWorkers, roots: readonly LocalRoot[]) {
  const { db, options } = infrastructure;
  const { dataDir } = options;
  const routes = buildRoutes(infrastructure, left.replicas);
  const capabilities = buildCapabilities(infrastructure, routes, left.replicas);
  const cluster = options.engine === "kubernetes" ? openCluster(infrastructure) : undefined;
  const replicas =
    cluster === undefined
      ? buildReplicas(infrastructure, capabilities, left.replicas)
      : buildPodReplicas(infrastructure, cluster);
  const podJobs = cluster && buildPodJobs(infrastructure, cluster);
  const { log, workerDeps } = infrastructure;
  const projects = buildProjectSweep(infrastructure);
  const autoscaling = new Autoscaling(replicas);
  const reports = new Reports(infrastructure.workerDeps.db, infrastructure.log);
  reports.traffic.servedAlone = (name) => servedAlone(replicas.group(name));
  const recorder = buildSeries(infrastructure, { replicas, reports });
  const recent = new TrafficSamples(reports);
  const { outbox, storesAndQueues } = buildStoresAndQueues(infrastructure, roots);
  const jobs = buildJobs(infrastructure, capabilities, left.lostWorkers, storesAndQueues, podJobs);
  const state = buildStateServices(infrastructure);
  const retention = buildRetention(infrastructure, jobs, state.removeSoon);
  const { python } = options;
  const keyUse = buildKeyUse(infrastructure);
  const sessions = buildSessions(infrastructure);
  const keys = buildKeys(infrastructure, keyUse, sessions);
  const apis = new Apis({
    patientDb: workerDeps.db,
    ...{ db, log, dataDir, python, pythonRuntime: pythonRuntimeDir, gpus: infrastructure.account.total.gpus },
    engine: options.engine,
    pythons: infrastructure.workerDeps.environments.pythons,
    ...{ projects, replicas, routes, gateways: options.gateways, keys },
    installingMs: (user) => workerDeps.environments.installingMs(user),
    closeJobsOf: (name) => jobs.closeJobsOf(name),
    stopJobsOf: (name) => jobs.stopJobsOf(name),
    askToForget,
    forgetSoon: () => retention.soon(),
  });
  const applications = buildApplications(infrastructure, apis, storesAndQueues);
  apis.deployApplicationsBy(applicationDeploy(applications, projects, options.engine));
  const audit = buildAudit(infrastructure);
  const control = new ControlServer(
    controllerSocket(options.runtimeDir),
    buildControl(infrastructure, {
      ...{ apis, applications, jobs, keys, sessions, replicas },
      ...{ reports, recent, routes, audit, recorder },
    }),
  );
  const internal = new ControlServer(
    internalSocket(options.runtimeDir),
    buildInternal(infrastructure, { replicas, autoscaling, reports, routes, keyUse, recorder }),
  );
  const services = [
    routes,
    ...state.services,
    workerDeps.environments,
    new InstallationWatch(workerDeps.db, workerDeps.environments),
    keyUse,
    sessions,
    keys,
    apis,
    replicas,
    autoscaling,
    reports,
    recorder,
    recent,
    outbox,
    retention,
    projects,
    ...(podJobs === undefined ? [] : [podJobs]),
    jobs,
    applications,
    audit,
    internal,
    control,
    new RuntimeWatch({ log: infrastructure.log, servers: [internal, control], replicas, apis }),
  ];
  return { services, replicas, routes };
}

/** Requests come to this server's pod once its gateways know the routes. */
async function takeRequests(
  pod: ActivePod,
  { options, confirmOwner }: Infrastructure,
  routes: RoutePublisher,
) {
  await routes.waitUntilApplied(options.gateways).catch(() => {});
  pod.take(confirmOwner);
}

/** Those that a former controller of this server started as processes: pods take their place. */
async function endReplicas({ workerDeps }: Infrastructure, replicas: WorkerRecord[]): Promise<void> {
  for (const record of replicas.splice(0)) {
    workerDeps.engine.end(record);
    await deleteWorker(workerDeps.db, record.worker_id);
  }
}

function buildProjectSweep({ log, options, workerDeps }: Infrastructure): ProjectSweep {
  const { db, environments } = workerDeps;
  const sweep = { db, log, environments, keepMs: options.keepEnvironments };
  const afterwards = () => sweepEnvironments(sweep);
  return new ProjectSweep({ db, log, dataDir: options.dataDir, trees: workerDeps.projects, afterwards });
}

async function stopController(
  services: Service[],
  drain: ApiReplicas | undefined,
  leave: () => Promise<void>,
): Promise<void> {
  // At the same time: both give what is in hand ten seconds, and a controller that takes 20 s is ended (child.ts).
  await Promise.all([drain?.drainAll(DRAIN_GRACE_MS), stopInReverse(services)]);
  await leave();
}
