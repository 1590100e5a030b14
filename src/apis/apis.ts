/** The deployed APIs of this controller: deploys, deletes and reads them, and publishes their routes. */

import { rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Keys, KeyUsers } from "../access/keys.ts";
import { inBackground, reportFault } from "../base/boundary.ts";
import { timestamp } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { apiLogDirectory } from "../contracts/data-layout.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { ApiView } from "../contracts/http/answers.ts";
import type { RefusedRoute } from "../contracts/routes.ts";
import type { Database } from "../database/database.ts";
import { statusOf } from "./api-status.ts";
import { endpointOf } from "./config/endpoints.ts";
import {
  type ConfigRequest,
  type DeployApplication,
  type DeployDeps,
  type DeployRequest,
  deploy,
  patch,
} from "./deploy/deploy.ts";
import type { DeployedApi } from "./deploy/plan-deployment.ts";
import { exportVersion } from "./export-api.ts";
import { isManaged } from "./managed-name.ts";
import { type RoutePublisher, toRoute, toSplitterRoute } from "./publish-routes.ts";
import { type ApiMetricsView, readMetrics } from "./records/api-metrics.ts";
import {
  type AnyVersion,
  type ApiVersion,
  allCurrent,
  currentVersion,
  deleteApi,
  exactSpec,
  findVersion,
  hasPredictor,
  isDeployed,
  readDeployed,
  renewPredictorId,
  type SplitterVersion,
  saveVersion,
  type UnreadableApi,
  versionHistory,
} from "./records/api-rows.ts";
import { submittedEntry } from "./records/submitted-entry.ts";
import type { Replicas, ReplicasOwner } from "./replicas/replicas.ts";

const NO_REPLICAS = { up_to_date_replicas: 0, requested_replicas: 0, replicas: [] };

/** The state of an API as far as this class knows it. `endpoint` is a path; responses have the whole address. */
export type ApiState = Omit<ApiView, "path" | "metrics" | "running_jobs" | "latest_job">;

export interface ApisDeps extends DeployDeps {
  db: Database;
  replicas: Replicas;
  routes: RoutePublisher;
  keys: Keys;
  log: Log;
  /** Stops the jobs of a deleted API. */
  stopJobsOf: (apiName: string) => Promise<void>;
}

export class Apis implements Service, KeyUsers, ReplicasOwner {
  private readonly deps: ApisDeps;
  private deployApplication: DeployApplication = async () => undefined;

  constructor(deps: ApisDeps) {
    this.deps = deps;
    deps.keys.serve(this);
    deps.replicas.serve(this);
  }

  /** Sets the handler for archives that hold an application. */
  deployApplicationsBy(deploy: DeployApplication): void {
    this.deployApplication = deploy;
  }

  replicasChanged(): void {
    const { log } = this.deps;
    inBackground(this.publish(), (error) => log.error({ err: error }, "routes could not be published"));
  }

  deletedGone(name: string): void {
    const { log } = this.deps;
    inBackground(this.removeLeftovers(name), (error) =>
      log.error({ err: error, api: name }, "its log and files stay"),
    );
  }

  async keysChanged(): Promise<void> {
    await this.publish();
    await this.deps.routes.waitUntilApplied();
  }

  async start(): Promise<void> {
    await this.publish();
  }

  async stop(): Promise<void> {}

  async deploy(request: DeployRequest): Promise<DeployedApi[]> {
    return this.deployed(request, await deploy(this.deps, request, this.deployApplication));
  }

  /** Deploys a new configuration for deployed APIs, and keeps their files. Throws `api_not_found`. */
  async patch(request: ConfigRequest, configText: string): Promise<DeployedApi[]> {
    return this.deployed(request, await patch(this.deps, request, configText));
  }

  private async deployed({ dryRun, force }: ConfigRequest, apis: DeployedApi[]): Promise<DeployedApi[]> {
    if (dryRun) return apis;
    await this.announce();
    if (force) await this.deps.replicas.cancelFormerRollouts(apis.map(({ api }) => api));
    return apis;
  }

  /** Tells gateways and replicas that the deployed APIs have changed. */
  async announce(): Promise<void> {
    await this.publish();
    inBackground(this.deps.replicas.reconcile());
    // A gateway that does not respond now gets the change later.
    await this.deps.routes.waitUntilApplied().catch(() => {});
  }

  /** Lets requests in flight finish, and stops jobs in progress (docs/contract/jobs.md#deleting-an-api). */
  async delete(name: string): Promise<void> {
    if (!(await isDeployed(this.deps.db, name))) throw apiNotFound(name);
    assertOwn(name, "deleted");
    await this.assertNotSplitTo(name);
    await this.remove(name);
  }

  async remove(name: string): Promise<void> {
    await this.deps.stopJobsOf(name);
    await deleteApi(this.deps.db, name);
    await this.publish();
    await this.deps.replicas.reconcile();
    await this.removeLeftovers(name);
  }

  /** Removes the log of a deleted API, and files that nothing needs any more. */
  async removeLeftovers(name: string): Promise<void> {
    if (await isDeployed(this.deps.db, name)) return;
    await rm(apiLogDirectory(this.deps.dataDir, name), { recursive: true, force: true });
    this.deps.projects.soon();
  }

  /** Throws `api_not_found`, or `wrong_state` if the version cannot be read. */
  async version(name: string): Promise<AnyVersion> {
    const found = await this.read(name);
    if ("why" in found) throw new ServiceError("wrong_state", `${name}: ${found.why}`);
    return found;
  }

  private async read(name: string): Promise<AnyVersion | UnreadableApi> {
    const { versions, unreadable } = await readDeployed(this.deps.db, name);
    const [found] = [...versions, ...unreadable];
    if (found === undefined) throw apiNotFound(name);
    return found;
  }

  isDeployed(name: string): Promise<boolean> {
    return isDeployed(this.deps.db, name);
  }

  findVersion(name: string): Promise<AnyVersion | undefined> {
    return currentVersion(this.deps.db, name);
  }

  /**
   * Starts new replicas of the same version; the old ones drain once those are ready. `force` cancels a rollout in
   * progress.
   */
  async refresh(name: string, force: boolean): Promise<void> {
    const version = await this.version(name);
    if (version.config.kind !== "RealtimeAPI") throw nothingToRefresh(version);
    await renewPredictorId(this.deps.db, version);
    if (force) await this.deps.replicas.cancelFormerRollouts([name]);
    else inBackground(this.deps.replicas.reconcile());
  }

  /**
   * Deploys a former version again: the previous one, or the one with this id. Returns its id. Throws `wrong_state` if
   * there is none.
   */
  async rollback(name: string, apiId: string | undefined): Promise<string> {
    const current = await this.version(name);
    assertOwn(name, "rolled back");
    const history = await this.history(name);
    const found = history.find(({ api_id }) =>
      apiId === undefined ? api_id !== current.api_id : api_id === apiId,
    );
    if (found === undefined || found.api_id === current.api_id) {
      const others = history.map(({ api_id }) => api_id).filter((id) => id !== current.api_id);
      const choice =
        others.length === 0 ? "no other version was deployed" : `others are ${others.join(", ")}`;
      const what =
        apiId === undefined ? "there is no version before it" : `${apiId} is not a former version of it`;
      throw new ServiceError("wrong_state", `${name} is at ${current.api_id}, and ${what}; ${choice}`);
    }
    const former = await findVersion(this.deps.db, name, found.api_id);
    await this.deps.db.transaction((tx) => saveVersion(tx, { ...former!, deployed_time: timestamp() }));
    await this.publish();
    inBackground(this.deps.replicas.reconcile());
    return found.api_id;
  }

  /**
   * Exports the deployed version, or the one with this id, as an archive that can be deployed. Throws `wrong_state` if
   * there is none.
   */
  async export(name: string, apiId: string | undefined): Promise<Readable> {
    const current = await this.version(name);
    assertOwn(name, "exported");
    const version = apiId === undefined ? current : await findVersion(this.deps.db, name, apiId);
    if (version !== undefined) return exportVersion(this.deps.dataDir, version);
    const ids = (await this.history(name)).map(({ api_id }) => api_id);
    throw new ServiceError("wrong_state", `${name} has no version ${apiId}; it has ${ids.join(", ")}`);
  }

  /** The versions that were deployed under this name, newest first. */
  history(name: string): Promise<Pick<ApiVersion, "api_id" | "deployed_time">[]> {
    return versionHistory(this.deps.db, name);
  }

  /** The configuration entry from which the API was deployed. */
  async submitted(name: string): Promise<unknown> {
    const found = await this.read(name);
    return "why" in found ? {} : submittedEntry(found);
  }

  /** The response counts of a real-time API over the last two weeks. */
  metrics(name: string): Promise<ApiMetricsView> {
    return readMetrics(this.deps.db, name);
  }

  async list(): Promise<ApiState[]> {
    const { versions, unreadable } = await readDeployed(this.deps.db);
    const states = [
      ...versions.map((version) => this.stateOf(version)),
      ...unreadable.map(stateOfUnreadable),
    ];
    return states.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async get(name: string): Promise<ApiState> {
    const found = await this.read(name);
    return "why" in found ? stateOfUnreadable(found) : this.stateOf(found);
  }

  /** Publishes the routes that follow from the deployed versions and the ready replicas. */
  async publish(): Promise<void> {
    const { versions, unreadable } = await readDeployed(this.deps.db);
    const { isAny } = this.deps.keys;
    const keys = this.deps.keys.forGateways();
    const missing = unreadable.map(({ name, why }) => ({ name, detail: why }));
    const apis = routesOf(versions.filter(hasPredictor), missing, (version) => {
      const group = this.deps.replicas.group(version.name);
      const replicas = { replicas: group?.serving ?? [], wanted: group?.wanted ?? 0 };
      return toRoute(version, replicas, this.stateOf(version).status, isAny);
    });
    const toSplitter = (version: SplitterVersion) => toSplitterRoute(version, isAny);
    const splitters = routesOf(versions.filter(isSplitter), missing, toSplitter);
    this.deps.routes.publish({ apis, splitters, keys }, missing);
  }

  /** Throws if a splitter sends requests to this API. */
  private async assertNotSplitTo(name: string): Promise<void> {
    const users = (await allCurrent(this.deps.db))
      .filter(isSplitter)
      .filter(({ config }) => config.apis.some((api) => api.name === name))
      .map((version) => version.name);
    if (users.length === 0) return;
    const message = `${name} cannot be deleted: it is used by the TrafficSplitter ${users.join(", ")}; delete that first, or take ${name} out of it`;
    throw new ServiceError("wrong_state", message);
  }

  /** If the state of an API cannot be computed, that API is in error and the others are still listed. */
  private stateOf(version: AnyVersion): ApiState {
    try {
      return this.readableState(version);
    } catch (error) {
      const { name, api_id, deployed_time } = version;
      const { kind } = version.config;
      reportFault(error, `the state of API ${name}`);
      return stateOfUnreadable({ name, kind, api_id, deployed_time, why: (error as Error).message });
    }
  }

  private readableState(version: AnyVersion): ApiState {
    const { name, api_id, deployed_time, config } = version;
    const endpoint = endpointOf(config);
    const common = {
      name,
      kind: config.kind,
      api_id,
      endpoint,
      last_updated: deployed_time,
      spec: exactSpec(version),
    };
    if (config.kind !== "RealtimeAPI") return { ...common, status: "live", ...NO_REPLICAS };
    const group = this.deps.replicas.group(name);
    // This holds for a moment after a deployment.
    if (group === undefined) return { ...common, status: "updating", ...NO_REPLICAS };
    const { status, message } = statusOf(group);
    return {
      ...common,
      status,
      ...(message === undefined ? {} : { message }),
      up_to_date_replicas: group.upToDate,
      requested_replicas: group.wanted,
      requested_because: group.wantedBecause,
      replicas: group.workers.map(({ identity, state, predictor_id }) => ({
        worker_id: identity.worker_id,
        pid: identity.pid,
        state,
        is_up_to_date: predictor_id === group.version.predictor_id,
      })),
    };
  }
}

/** Collects routes. A version whose route throws is added to `missing`. */
function routesOf<Version extends { name: string }, Route>(
  versions: readonly Version[],
  missing: RefusedRoute[],
  routeOf: (version: Version) => Route,
): Route[] {
  return versions.flatMap((version) => {
    try {
      return [routeOf(version)];
    } catch (error) {
      missing.push({ name: version.name, detail: (error as Error).message });
      return [];
    }
  });
}

function stateOfUnreadable({ name, kind, api_id, deployed_time, why }: UnreadableApi): ApiState {
  const known = { name, kind, api_id, endpoint: `/${name}`, last_updated: deployed_time };
  return { ...known, spec: {}, status: "error", message: why, ...NO_REPLICAS };
}

function isSplitter(version: AnyVersion): version is SplitterVersion {
  return !hasPredictor(version);
}

function nothingToRefresh({ name, config }: AnyVersion): ServiceError {
  const instead =
    config.kind === "TrafficSplitter"
      ? `refresh the APIs that it sends to: ${config.apis.map((api) => `\`quern refresh ${api.name}\``).join(", ")}`
      : "each job starts its own workers";
  const message = `${name} is a ${config.kind}: it has no replicas to refresh; ${instead}`;
  return new ServiceError("wrong_state", message);
}

/** Throws for an API of an application: it is deployed and deleted with the application only. */
function assertOwn(name: string, what: string): void {
  if (!isManaged(name)) return;
  const [application] = name.split(".");
  const message = `${name} cannot be ${what} alone: it belongs to the application ${application}; deploy that, or delete it (\`quern delete -a ${application}\`)`;
  throw new ServiceError("wrong_state", message);
}

export function apiNotFound(name: string): ServiceError {
  return new ServiceError("api_not_found", `${name} is not deployed; \`quern get\` shows what is`);
}
