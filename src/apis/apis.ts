/** Changes the deployed APIs of this controller: deploys, refreshes, rolls back and deletes them. */

import type { Readable } from "node:stream";
import type { Keys } from "../access/keys.ts";
import { inBackground } from "../base/boundary.ts";
import { timestamp } from "../base/clock.ts";
import { removeTree } from "../base/files/remove-tree.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { apiLogDirectory } from "../contracts/data-layout.ts";
import type { DoneBy } from "../contracts/keys.ts";
import type { Database, Statements } from "../database/database.ts";
import { ApiReader, apiNotFound, type InstallingMs } from "./api-reader.ts";
import { assertHasReplicas, assertNotSplitTo, assertOwn } from "./change-rules.ts";
import {
  type ConfigRequest,
  type DeployApplication,
  type DeployDeps,
  type DeployRequest,
  deploy,
  patch,
} from "./deploy/deploy.ts";
import type { DeployedApi } from "./deploy/plan-deployment.ts";
import { DeployedRoutes } from "./deployed-routes.ts";
import { exportVersion } from "./export-api.ts";
import { currentOrFormer, formerVersion } from "./former-versions.ts";
import type { RoutePublisher } from "./publish-routes.ts";
import { allCurrent, deleteApi, type InTransaction, renewPredictorId } from "./records/api-rows.ts";
import { saveVersion } from "./records/save-version.ts";
import type { ApiReplicas, ReplicasOwner } from "./serving/api-replicas.ts";

export interface ApisDeps extends DeployDeps {
  /** Waits for as long as it cannot be reached: a change that is recorded must get to the gateways. */
  patientDb: Database;
  replicas: ApiReplicas;
  installingMs: InstallingMs;
  routes: RoutePublisher;
  /** How many gateways the server has. */
  gateways: number;
  keys: Keys;
  log: Log;
  /** Records that the jobs of an API are stopped; the next controller ends them if this one is killed. */
  closeJobsOf: (apiName: string) => Promise<unknown>;
  /** Stops the jobs of a deleted API. */
  stopJobsOf: (apiName: string) => Promise<void>;
  /** Removes the records of the jobs that were created up to `time`, soon. Resolves to their number. */
  askToForget: (tx: Statements, apiName: string, time: string) => Promise<number>;
  forgetSoon: () => void;
}

export class Apis implements Service, ReplicasOwner {
  readonly deployed: ApiReader;
  private readonly deps: ApisDeps;
  private readonly routes: DeployedRoutes;
  private deployApplication: DeployApplication = async () => undefined;

  constructor(deps: ApisDeps) {
    const { db, patientDb, replicas, routes, gateways, keys } = deps;
    this.deps = deps;
    this.deployed = new ApiReader(db, replicas, deps.installingMs);
    const { deployed } = this;
    this.routes = new DeployedRoutes({ db: patientDb, replicas, routes, gateways, keys, deployed });
    keys.serve(this.routes);
    replicas.serve(this);
  }

  /** Sets the handler for archives that hold an application. */
  deployApplicationsBy(deploy: DeployApplication): void {
    this.deployApplication = deploy;
  }

  replicasChanged(): void {
    const { log } = this.deps;
    inBackground(this.routes.publish(), (error) =>
      log.error({ event: "routes_not_published", err: error }, "routes could not be published"),
    );
  }

  deletedGone(name: string): void {
    inBackground(this.removeLeftovers(name));
  }

  async start(): Promise<void> {
    await this.routes.publish();
  }

  async stop(): Promise<void> {}

  async deploy(request: DeployRequest): Promise<DeployedApi[]> {
    return this.announceAll(request, await deploy(this.deps, request, this.deployApplication));
  }

  /** Deploys a new configuration for deployed APIs, and keeps their files. Throws `api_not_found`. */
  async patch(request: ConfigRequest, configText: string): Promise<DeployedApi[]> {
    return this.announceAll(request, await patch(this.deps, request, configText));
  }

  private async announceAll({ dryRun, force }: ConfigRequest, apis: DeployedApi[]): Promise<DeployedApi[]> {
    if (dryRun) return apis;
    for (const { api, api_id, kind } of apis)
      this.deps.log.info({ event: "api_deployed", api, api_id, kind }, `${api} is deployed`);
    await this.announce();
    if (force) await this.deps.replicas.cancelFormerRollouts(apis.map(({ api }) => api));
    return apis;
  }

  /** Tells gateways and replicas that the deployed APIs have changed. */
  async announce(): Promise<void> {
    await this.routes.publish();
    inBackground(this.deps.replicas.reconcile());
    // A gateway that does not respond now gets the change later.
    await this.deps.routes.waitUntilApplied().catch(() => {});
  }

  /** Lets requests in flight finish, and stops jobs in progress (docs/contract/jobs.md#deleting-an-api). */
  async delete(name: string, also?: InTransaction): Promise<void> {
    if (!(await this.deployed.isDeployed(name))) throw apiNotFound(name);
    assertOwn(name, "deleted");
    assertNotSplitTo(name, await allCurrent(this.deps.db));
    await this.remove(name, also);
  }

  /** Also removes the records of its jobs; of an API that is gone, only these. Resolves to their number. */
  async deleteWithRecords(name: string): Promise<number> {
    // Before the name is free: jobs of a later API stay.
    const time = timestamp();
    let jobs = 0;
    const ask = async (tx: Statements) => {
      jobs = await this.deps.askToForget(tx, name, time);
    };
    try {
      if (await this.deployed.isDeployed(name)) await this.delete(name, ask);
      else {
        await this.deps.db.transaction(ask);
        if (jobs === 0) throw apiNotFound(name);
      }
      return jobs;
    } finally {
      this.deps.forgetSoon();
    }
  }

  /** The API is gone before its jobs end, one after the other: a kill meanwhile leaves neither. */
  async remove(name: string, also?: InTransaction): Promise<void> {
    await this.deps.closeJobsOf(name);
    await deleteApi(this.deps.db, name, also);
    this.deps.log.info({ event: "api_deleted", api: name }, `${name} is deleted`);
    await this.routes.publish();
    await this.deps.stopJobsOf(name);
    await this.deps.replicas.reconcile();
    await this.removeLeftovers(name);
  }

  /** Removes the log of a deleted API, and files that nothing needs any more. If that fails, the API is still gone. */
  private async removeLeftovers(name: string): Promise<void> {
    const { log, dataDir, projects } = this.deps;
    try {
      if (await this.deployed.isDeployed(name)) return;
      await removeTree(apiLogDirectory(dataDir, name));
      projects.soon();
    } catch (error) {
      log.error({ event: "api_files_stay", err: error, api: name }, "its log and files stay");
    }
  }

  /**
   * Starts new replicas of the same version; the old ones drain once those are ready. `force` cancels a rollout in
   * progress.
   */
  async refresh(name: string, force: boolean): Promise<void> {
    const version = await this.deployed.version(name);
    assertHasReplicas(version);
    await renewPredictorId(this.deps.db, version);
    if (force) await this.deps.replicas.cancelFormerRollouts([name]);
    else inBackground(this.deps.replicas.reconcile());
  }

  /**
   * Deploys a former version again: the previous one, or the one with this id. Returns its id. Throws `wrong_state` if
   * there is none. `by` is kept with it.
   */
  async rollback(name: string, apiId: string | undefined, by: DoneBy): Promise<string> {
    const current = await this.deployed.version(name);
    assertOwn(name, "rolled back");
    const former = await formerVersion(this.deps.db, current, apiId);
    await this.deps.db.transaction((tx) =>
      saveVersion(tx, { ...former, deployed_time: timestamp() }, { change: "rolled_back", by }),
    );
    await this.routes.publish();
    inBackground(this.deps.replicas.reconcile());
    return former.api_id;
  }

  /**
   * Exports the deployed version, or the one with this id, as an archive that can be deployed. Throws `wrong_state` if
   * there is none. `sender`: see `exportVersion`.
   */
  async export(name: string, apiId: string | undefined, sender: string): Promise<Readable> {
    const current = await this.deployed.version(name);
    assertOwn(name, "exported");
    const version = await currentOrFormer(this.deps.db, current, apiId);
    await this.deps.projects.fetch(version.project_id);
    return exportVersion(this.deps.dataDir, version, sender);
  }
}
