/** The deployed APIs of this controller: deploys, deletes, reads, and keeps routes in step. */
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { RouteSnapshot } from "../contracts/routes.ts";
import type { Database } from "../database/database.ts";
import {
  type ApiVersion,
  currentVersion,
  currentVersions,
  deleteApi,
  renewPredictorId,
  versionHistory,
} from "./api-store.ts";
import { type DeployDeps, type DeployedApi, type DeployRequest, deploy } from "./deploy.ts";
import { type RoutePublisher, toRoute } from "./publish-routes.ts";
import type { ReplicaState, Replicas } from "./replicas.ts";

export interface ApiState {
  name: string;
  kind: "RealtimeAPI" | "BatchAPI";
  api_id: string;
  /** Decision 6: `live`, `updating`, `error`. */
  status: "live" | "updating" | "error";
  /** Why the status is `error`. */
  message?: string;
  up_to_date_replicas: number;
  requested_replicas: number;
  /** Every replica that there is, those that are leaving included. */
  replicas: ReplicaState[];
  last_updated: string;
  spec: unknown;
}

export interface ApisDeps extends DeployDeps {
  db: Database;
  replicas: Replicas;
  routes: RoutePublisher;
  /** All keys that gateways compare with, and whether any was made. */
  keys: () => { forGateways: RouteSnapshot["keys"]; isAny: boolean };
  /** The jobs of a deleted API end. */
  stopJobsOf: (apiName: string) => Promise<void>;
}

export class Apis implements Service {
  private readonly deps: ApisDeps;

  constructor(deps: ApisDeps) {
    this.deps = deps;
  }

  async start(): Promise<void> {
    await this.publish();
  }

  async stop(): Promise<void> {}

  async deploy(request: DeployRequest): Promise<DeployedApi[]> {
    const deployed = await deploy(this.deps, request);
    if (request.dryRun) return deployed;
    await this.publish();
    void this.deps.replicas.reconcile();
    return deployed;
  }

  /** Requests in flight finish; jobs in progress are stopped (decision 9.14). */
  async delete(name: string): Promise<void> {
    await this.version(name);
    await this.deps.stopJobsOf(name);
    await deleteApi(this.deps.db, name);
    await this.publish();
    await this.deps.replicas.reconcile();
  }

  /** Throws `api_not_found`. */
  async version(name: string): Promise<ApiVersion> {
    const version = await currentVersion(this.deps.db, name);
    if (version === undefined) throw apiNotFound(name);
    return version;
  }

  /** New replicas of the same version, ready before the old ones drain. */
  async refresh(name: string): Promise<void> {
    const version = await this.version(name);
    if (version.config.kind !== "RealtimeAPI") {
      const message = `${name} is a ${version.config.kind}: it has no replicas to refresh; each job starts its own workers`;
      throw new ServiceError("wrong_state", message);
    }
    await renewPredictorId(this.deps.db, version);
    void this.deps.replicas.reconcile();
  }

  /** What was deployed under this name, newest first. */
  history(name: string): Promise<Pick<ApiVersion, "api_id" | "deployed_time">[]> {
    return versionHistory(this.deps.db, name);
  }

  async list(): Promise<ApiState[]> {
    return (await currentVersions(this.deps.db)).map((version) => this.stateOf(version));
  }

  async get(name: string): Promise<ApiState> {
    return this.stateOf(await this.version(name));
  }

  /** Writes the routes that follow from what is deployed and which replicas are ready. */
  async publish(): Promise<void> {
    const versions = await currentVersions(this.deps.db);
    const { forGateways, isAny } = this.deps.keys();
    const routes = versions.map((version) =>
      toRoute(version, this.deps.replicas.serving(version.name), this.stateOf(version).status, isAny),
    );
    this.deps.routes.publish(routes, forGateways);
  }

  private stateOf(version: ApiVersion): ApiState {
    const { name, api_id, deployed_time, config } = version;
    const common = { name, kind: config.kind, api_id, last_updated: deployed_time, spec: config };
    if (config.kind === "BatchAPI")
      return { ...common, status: "live", up_to_date_replicas: 0, requested_replicas: 0, replicas: [] };
    const { upToDate, requested, failure, replicas } = this.deps.replicas.state(name);
    const status = failure !== undefined ? "error" : upToDate >= requested ? "live" : "updating";
    return {
      ...common,
      status,
      ...(failure === undefined ? {} : { message: failure }),
      up_to_date_replicas: upToDate,
      requested_replicas: requested,
      replicas,
    };
  }
}

function apiNotFound(name: string): ServiceError {
  return new ServiceError("api_not_found", `${name} is not deployed; \`quern get\` shows what is`);
}
