/** The deployed APIs of this controller: deploys, deletes, reads, and keeps routes in step. */
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Database } from "../database/database.ts";
import { type ApiVersion, currentVersion, currentVersions, deleteApi } from "./api-store.ts";
import { type DeployDeps, type DeployedApi, type DeployRequest, deploy } from "./deploy.ts";
import { type RoutePublisher, toRoute } from "./publish-routes.ts";
import type { Replicas } from "./replicas.ts";

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
  last_updated: string;
  spec: unknown;
}

export interface ApisDeps extends DeployDeps {
  db: Database;
  replicas: Replicas;
  routes: RoutePublisher;
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

  async list(): Promise<ApiState[]> {
    return (await currentVersions(this.deps.db)).map((version) => this.stateOf(version));
  }

  async get(name: string): Promise<ApiState> {
    return this.stateOf(await this.version(name));
  }

  /** Writes the routes that follow from what is deployed and which replicas are ready. */
  async publish(): Promise<void> {
    const versions = await currentVersions(this.deps.db);
    this.deps.routes.publish(
      versions.map((version) =>
        toRoute(version, this.deps.replicas.serving(version.name), this.stateOf(version).status),
      ),
    );
  }

  private stateOf(version: ApiVersion): ApiState {
    const { name, api_id, deployed_time, config } = version;
    const common = { name, kind: config.kind, api_id, last_updated: deployed_time, spec: config };
    if (config.kind === "BatchAPI")
      return { ...common, status: "live", up_to_date_replicas: 0, requested_replicas: 0 };
    const { upToDate, requested, failure } = this.deps.replicas.state(name);
    const status = failure !== undefined ? "error" : upToDate >= requested ? "live" : "updating";
    return {
      ...common,
      status,
      ...(failure === undefined ? {} : { message: failure }),
      up_to_date_replicas: upToDate,
      requested_replicas: requested,
    };
  }
}

function apiNotFound(name: string): ServiceError {
  return new ServiceError("api_not_found", `${name} is not deployed; \`quern get\` shows what is`);
}
