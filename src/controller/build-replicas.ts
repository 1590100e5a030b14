/** Builds what serves real-time APIs: the published routes, the capabilities of workers, and the replicas. */
import { join } from "node:path";
import { Capabilities } from "../access/capabilities.ts";
import { RoutePublisher } from "../apis/publish-routes.ts";
import { type ApiVersion, hasPredictor, readDeployed } from "../apis/records/api-rows.ts";
import { Replicas } from "../apis/replicas/replicas.ts";
import { computeOf, initOf, lifetimeOf, memoryLimitOf, startWorker } from "../apis/replicas/start-worker.ts";
import { wallMs } from "../base/clock.ts";
import { apiLogDirectory, routesFile } from "../contracts/data-layout.ts";
import type { CapabilityRoute, RefusedRoute } from "../contracts/routes.ts";
import { deleteWorker, type WorkerRecord } from "../database/worker-rows.ts";
import { appendLogLine } from "../observe/log-files.ts";
import { noteReplicaEnd } from "../series/change-rows.ts";
import type { ControllerOptions, Infrastructure } from "./infrastructure.ts";

/** `orphans` are the replicas that a former controller started. */
export function buildRoutes(
  { options, epoch, log }: Infrastructure,
  orphans: readonly WorkerRecord[],
): RoutePublisher {
  const onRefused = ({ name: api, detail }: RefusedRoute) =>
    log.error(
      { event: "route_not_published", api, detail },
      "a route is not published: no gateway could read it",
    );
  return new RoutePublisher(routesFile(options.dataDir), epoch, onRefused, capabilityRoutes(orphans));
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

/** Its capability ends, and its row is deleted. */
export async function forgetWorker(
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
  const { epoch, log, account } = infrastructure;
  const workerDeps = { ...infrastructure.workerDeps, capabilities };
  const deps = {
    epoch,
    log,
    versions: async () => {
      const { versions, unreadable } = await readDeployed(workerDeps.db);
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
    lifetimeOf,
    initOf: (version: ApiVersion) => initOf(workerDeps.dataDir, version),
    apiLog: (name: string, line: string) =>
      appendLogLine(join(apiLogDirectory(workerDeps.dataDir, name), "server.log"), line),
    // Without it an explanation of that time lacks this cause, and nothing else does.
    noteEnd: (name: string, how: string) =>
      noteReplicaEnd(workerDeps.db, name, how, wallMs() / 1000).catch((err: Error) =>
        log.warn({ event: "series_not_saved", api: name, err }, "the end of a replica was not recorded"),
      ),
  };
  return new Replicas(
    deps,
    orphans.map((record) => withPortOf(infrastructure.options, record)),
  );
}
