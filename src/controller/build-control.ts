/** Builds the controller's HTTP: keys, audit, the control plane, and the requests of gateways. */
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { AdminToken } from "../access/admin-token.ts";
import { KeyUse } from "../access/key-use.ts";
import { type KeyStore, Keys } from "../access/keys.ts";
import { Sessions } from "../access/sessions.ts";
import type { Apis } from "../apis/apis.ts";
import { ProjectLists } from "../apis/projects/project-lists.ts";
import type { RoutePublisher } from "../apis/publish-routes.ts";
import { exactSpec, findVersion } from "../apis/records/api-rows.ts";
import type { Autoscaling } from "../apis/replicas/autoscaling.ts";
import type { Reports } from "../apis/reports.ts";
import type { ApiReplicas } from "../apis/serving/api-replicas.ts";
import { Backups } from "../backup/take-backup.ts";
import { inBackground } from "../base/boundary.ts";
import type { Jobs } from "../batch/jobs.ts";
import { Queues } from "../batch/letters/queues.ts";
import { apiLogDirectory, jobLogDirectory, logsDirectory } from "../contracts/data-layout.ts";
import { packageRoot } from "../contracts/package-root.ts";
import { SecretNames } from "../contracts/secrets.ts";
import { LISTS, OpenStreams } from "../control/answers/open-streams.ts";
import { ShownConfig } from "../control/answers/shown-config.ts";
import { controlApp, internalApp } from "../control/app.ts";
import { RecentPasts } from "../control/explain/past-facts.ts";
import type { TrafficSamples } from "../control/explain/traffic-samples.ts";
import { ReadsInTurn } from "../control/requests/reads-in-turn.ts";
import {
  addKey,
  addSession,
  allKeys,
  allSessions,
  removeSessions,
  replaceKey,
  revokeKey,
  saveKeyUse,
} from "../database/key-rows.ts";
import type { Applications } from "../legacy/applications.ts";
import { Audit } from "../observe/audit.ts";
import { describeFullDisk } from "../observe/disk-space.ts";
import { LoopDelayMeter } from "../observe/loop-delay.ts";
import type { SeriesRecorder } from "../series/recorder.ts";
import { version } from "../settings/installation.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { accountFacts, databaseBytes, shownCompute, waitingFor, workersInMemory } from "./server-facts.ts";

export function buildKeyUse({ db, log }: Infrastructure): KeyUse {
  return new KeyUse({ save: (ids, time) => saveKeyUse(db, ids, time), log });
}

export function buildSessions({ db }: Infrastructure): Sessions {
  return new Sessions({
    all: () => allSessions(db),
    add: (session) => addSession(db, session),
    remove: (hashes) => removeSessions(db, hashes),
  });
}

export function buildKeys({ db, options }: Infrastructure, use: KeyUse, sessions: Sessions): Keys {
  const store: KeyStore = {
    all: () => allKeys(db),
    add: (key) => addKey(db, key),
    replace: (id, end, successor) => replaceKey(db, id, end, successor),
    revoke: (id, time) => revokeKey(db, id, time),
  };
  const { dataDir, jwt, sigv4 } = options;
  const takesTokens = jwt !== undefined || sigv4 !== undefined;
  return new Keys({ store, use, admin: new AdminToken(dataDir), sessions, takesTokens });
}

export function buildAudit({ options }: Infrastructure): Audit {
  return new Audit(logsDirectory(options.dataDir));
}

export function buildControl(
  { db, databaseFault, log, options, workerDeps, account }: Infrastructure,
  rooms: {
    apis: Apis;
    applications: Applications;
    jobs: Jobs;
    keys: Keys;
    sessions: Sessions;
    replicas: ApiReplicas;
    reports: Reports;
    recent: TrafficSamples;
    routes: RoutePublisher;
    audit: Audit;
    recorder: SeriesRecorder;
  },
): RequestListener {
  const { dataDir, controlListen, machine } = options;
  const series = { db, recorder: rooms.recorder };
  const app = controlApp({
    log,
    version: version(),
    hasControlListener: controlListen !== undefined,
    memoryLimits: workerDeps.engine.memoryLimits,
    compute: () => shownCompute(account, machine),
    waitingForCompute: () => waitingFor(account),
    account: () => ({ ...accountFacts(account), isOfCluster: options.engine === "kubernetes" }),
    memoryOfWorkers: () => workerDeps.engine.memoryInUse(),
    ...{ parentPid: options.parentPid, dataDir, certificate: options.tls?.cert },
    databaseBytes: () => databaseBytes(dataDir, options.database === undefined ? undefined : db),
    workersInMemory: () => workersInMemory(db, workerDeps.engine),
    databaseFault,
    diskFault: () => describeFullDisk(dataDir),
    gateways: () => ({ wanted: options.gateways, connected: rooms.routes.connected }),
    warnings: () => rooms.routes.warnings,
    ...rooms,
    streams: new OpenStreams(rooms.keys),
    lists: new OpenStreams(rooms.keys, LISTS),
    reads: new ReadsInTurn(rooms.keys),
    searches: new ReadsInTurn(rooms.keys),
    auditDirectory: logsDirectory(dataDir),
    dashboardDirectory: join(packageRoot, "dist", "dashboard"),
    projectLists: new ProjectLists(dataDir, workerDeps.projects),
    backups: new Backups({
      ...{ dataDir, db, version: version() },
      isOnPostgres: options.database !== undefined,
      hasState: options.state !== undefined,
    }),
    loop: new LoopDelayMeter({ isBusy: () => rooms.jobs.isBusy }),
    queues: new Queues(db),
    series,
    pasts: new RecentPasts(series),
    submitPriorityMax: options.submitPriorityMax,
    shown: new ShownConfig(rooms.keys, new SecretNames(options.secretNames)),
    apiLogDirectory: (name) => apiLogDirectory(dataDir, name),
    jobLogDirectory: (jobId) => jobLogDirectory(dataDir, jobId),
    specOf: async (name, apiId) => {
      const version = await findVersion(db, name, apiId);
      return version === undefined ? undefined : () => exactSpec(version);
    },
  });
  return listenerOf(app);
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
  rooms: {
    replicas: ApiReplicas;
    autoscaling: Autoscaling;
    reports: Reports;
    routes: RoutePublisher;
    keyUse: KeyUse;
    recorder: SeriesRecorder;
  },
): RequestListener {
  const { replicas, autoscaling, reports, routes, keyUse, recorder } = rooms;
  const app = internalApp({
    snapshots: {
      whole: () => routes.whole,
      subscribe: (gateway, listener) => routes.subscribe(gateway, listener),
      applied: (gateway, stamp, refused) => routes.applied(gateway, stamp, refused),
    },
    killReplica: (workerId) => replicas.kill(workerId),
    replaceReplica: (workerId) => replicas.replace(workerId),
    wakeApi: (name) => autoscaling.wake(name),
    keysUsed: (used) => keyUse.note(used),
    report: async ({ report, refused }) => {
      for (const why of refused)
        log.error(
          { event: "metrics_unreadable", why },
          "the metrics of an API could not be read, and are missing",
        );
      autoscaling.report(report.gateway, new Map(report.apis.map((api) => [api.name, api.in_flight])));
      await reports.take(report);
      recorder.sample();
    },
  });
  return listenerOf(app);
}
