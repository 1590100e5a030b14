/** Builds what runs real-time APIs and jobs as pods of a cluster (`--engine kubernetes`). */
import { join } from "node:path";
import { PodReplicas } from "../apis/pods/pod-replicas.ts";
import { ProjectServer } from "../apis/pods/project-server.ts";
import { jobPodsOf, type PodSettings, workerPodsOf } from "../apis/pods/worker-pods-of.ts";
import { projectArchive } from "../apis/projects/project-archive.ts";
import {
  apisOfProject,
  findVersion,
  hasPredictor,
  readDeployed,
  versionOfPredictor,
} from "../apis/records/api-rows.ts";
import { initOf, lifetimeOf } from "../apis/replicas/start-worker.ts";
import { wallMs } from "../base/clock.ts";
import { processLog } from "../base/log.ts";
import { PodJobs } from "../batch/pods/pod-jobs.ts";
import { jobById } from "../batch/records/job-rows.ts";
import { CannotStart } from "../contracts/cannot-start.ts";
import { apiLogDirectory, jobLogDirectory } from "../contracts/data-layout.ts";
import { ActivePod } from "../kubernetes/active-pod.ts";
import { ApiClient } from "../kubernetes/api-client.ts";
import type { ClusterAccess } from "../kubernetes/cluster-access.ts";
import { podAccess } from "../kubernetes/cluster-access.ts";
import { findAccess } from "../kubernetes/find-access.ts";
import { WorkerAuthority } from "../kubernetes/pods/authority.ts";
import { appendLogLine } from "../observe/log-files.ts";
import { noteReplicaEnd } from "../series/change-rows.ts";
import { kubeconfigFile } from "../settings/environment.ts";
import type { ControllerOptions, Infrastructure } from "./infrastructure.ts";

/** The Service of `quern export kubernetes`. */
const SERVICE = "quern";
/** The label of the server's pods. */
const SERVER = { "app.kubernetes.io/name": "quern" };
const POSTGRES_PORT = 5432;

/** What the pods of APIs and those of jobs have in common. */
export interface Cluster {
  client: ApiClient;
  namespace: string;
  authority: WorkerAuthority;
  settings: PodSettings;
}

export function openCluster({ options, instanceId, confirmOwner }: Infrastructure): Cluster {
  const access = accessOf(options);
  const client = new ApiClient(access, confirmOwner);
  const namespace = options.podNamespace ?? access.namespace;
  const url = options.podUrl ?? `https://${SERVICE}.${namespace}.svc:${options.podListen.port}`;
  const authority = new WorkerAuthority({ client, namespace, instanceId });
  return { client, namespace, authority, settings: { namespace, image: options.workerImage!, url } };
}

export function buildPodJobs(infrastructure: Infrastructure, cluster: Cluster): PodJobs {
  const { log, db, leaving, options } = infrastructure;
  const { settings, ...own } = cluster;
  const podsOf = async (jobId: string) => {
    const job = await jobById(db, jobId);
    const version = job && (await findVersion(db, job.api_name, job.api_id));
    return version === undefined || !hasPredictor(version) ? undefined : jobPodsOf(version, job!, settings);
  };
  const workerLog = (jobId: string, worker: string, line: string) =>
    appendLogLine(join(jobLogDirectory(options.dataDir, jobId), `${worker}.log`), line);
  return new PodJobs({ ...own, db, log, podsOf, workerLog, leaving: leaving.signal });
}

export function buildPodReplicas(infrastructure: Infrastructure, cluster: Cluster): PodReplicas {
  const { options, log, epoch, workerDeps } = infrastructure;
  const { db, dataDir } = workerDeps;
  const { client, namespace, authority, settings } = cluster;
  const projects = new ProjectServer({
    listen: options.podListen,
    certificate: () =>
      authority.serverCertificate(new URL(settings.url).hostname.replace(/^\[|\]$/g, ""), new Date(wallMs())),
    apisOf: (id) => apisOfProject(db, id),
    isTokenOf: (apis, token) => authority.isTokenOf(apis, token),
    archive: async (id) => ((await workerDeps.projects.fetch(id)) ? projectArchive(dataDir, id) : undefined),
    onFailure: (err) => log.error({ event: "cluster_failed", err }, "a pod did not get its project"),
  });
  const logOf = (name: string, writer: string) => join(apiLogDirectory(dataDir, name), `${writer}.log`);
  return new PodReplicas({
    ...{ client, namespace, log, epoch, authority, projects, lifetimeOf },
    versions: async () => {
      const { versions, unreadable } = await readDeployed(db);
      return { versions: versions.filter(hasPredictor), unreadable: unreadable.map(({ name }) => name) };
    },
    podsOf: (version, replicas, extra) => workerPodsOf(version, { replicas, extra }, settings),
    network: { namespace, server: isPod(options) ? SERVER : undefined, databasePort: portOf(options) },
    initOf: async (name, predictorId) => {
      const version = await versionOfPredictor(db, name, predictorId);
      return version === undefined ? undefined : initOf(dataDir, version);
    },
    apiLog: (name, line) => appendLogLine(logOf(name, "server"), line),
    workerLog: (name, worker, lines) => {
      for (const line of lines) appendLogLine(logOf(name, worker), line);
    },
    noteEnd: (name, how) =>
      noteReplicaEnd(db, name, how, wallMs() / 1000).catch((err: Error) =>
        log.warn({ event: "series_not_saved", api: name, err }, "the end of a replica was not recorded"),
      ),
  });
}

/** The label of this server's pod; undefined if it is no pod of several (`quern export kubernetes --state`). */
export function openActivePod(options: ControllerOptions): ActivePod | undefined {
  if (options.podName === undefined) return undefined;
  const access = accessOf(options, "--pod-name");
  const { namespace } = access;
  return new ActivePod({ client: new ApiClient(access), namespace, pod: options.podName, log: processLog() });
}

function accessOf({ serverEnv }: ControllerOptions, option = "--engine kubernetes"): ClusterAccess {
  try {
    return findAccess(kubeconfigFile(), serverEnv);
  } catch (error) {
    throw new CannotStart("option_unusable", `${option}: ${(error as Error).message}`, error);
  }
}

/** The server itself is a pod, which a NetworkPolicy can name. */
function isPod({ serverEnv }: ControllerOptions): boolean {
  return podAccess(serverEnv) !== undefined;
}

function portOf({ database }: ControllerOptions): number {
  return Number(new URL(database!).port || POSTGRES_PORT);
}
