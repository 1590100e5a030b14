/** Real-time APIs that another part of the server deploys, without a configuration file: the models of applications. */
import { timestamp } from "../base/clock.ts";
import type { ApiStatus } from "../contracts/config/api-statuses.ts";
import { apiSchema } from "../contracts/config/apis.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Database } from "../database/database.ts";
import type { Apis } from "./apis.ts";
import { conflictOf, endpointOf } from "./config/endpoints.ts";
import type { DeployableConfig } from "./config/parse-config.ts";
import { isManaged } from "./managed-name.ts";
import { allCurrent, currentVersion, identityOf } from "./records/api-rows.ts";
import { saveVersion } from "./records/save-version.ts";

export interface Placement {
  /** It contains a dot, which names in configuration files cannot. */
  name: string;
  endpoint: string;
  project_id: string;
  /** The path of the predictor's file in the project. */
  path: string;
  /** The predictor's `config`. */
  config: { resource_id: string };
  compute: {
    replicas: number;
    cpu?: string | null | undefined;
    mem?: string | null | undefined;
    gpu: number;
  };
}

export interface ManagedApi {
  name: string;
  endpoint: string;
  status: ApiStatus;
  message?: string;
  up_to_date_replicas: number;
  requested_replicas: number;
  last_updated: string;
  /** From `config`. */
  resourceId: string;
}

export class ManagedApis {
  private readonly db: Database;
  private readonly apis: Apis;

  constructor(db: Database, apis: Apis) {
    this.db = db;
    this.apis = apis;
  }

  /** Starts a rolling update to this placement if it differs from the deployed one. */
  async place(placement: Placement): Promise<void> {
    const { name, project_id, config } = placement;
    const api = configOf(placement);
    const configText = JSON.stringify(config);
    const ids = identityOf(api, configText, project_id);
    if ((await currentVersion(this.db, name))?.api_id === ids.api_id) return;
    const version = { name, ...ids, project_id, deployed_time: timestamp(), configText, config: api };
    await this.db.transaction((tx) => saveVersion(tx, version));
    await this.apis.announce();
  }

  async find(name: string): Promise<ManagedApi | undefined> {
    const version = await currentVersion(this.db, name);
    if (version === undefined) return undefined;
    const state = await this.apis.deployed.get(name);
    return {
      ...{ name, endpoint: state.endpoint, status: state.status },
      ...(state.message === undefined ? {} : { message: state.message }),
      up_to_date_replicas: state.up_to_date_replicas,
      requested_replicas: state.requested_replicas,
      last_updated: state.last_updated,
      resourceId: (JSON.parse(version.configText) as { resource_id: string }).resource_id,
    };
  }

  remove(name: string): Promise<void> {
    return this.apis.remove(name);
  }

  async names(): Promise<string[]> {
    return (await allCurrent(this.db)).map(({ name }) => name).filter(isManaged);
  }

  /** Throws `invalid_request` if another API has this address, or one above or below it. */
  async assertFree(name: string, endpoint: string): Promise<void> {
    const others = (await allCurrent(this.db)).map(({ config }) => config);
    const other = conflictOf({ name, networking: { endpoint } }, others);
    if (other === undefined) return;
    const message = `${endpoint} conflicts with ${other.name} at ${endpointOf(other)}; delete that API, or give it another networking.endpoint`;
    throw new ServiceError("invalid_request", message);
  }
}

function configOf({ name, endpoint, path, compute }: Placement): DeployableConfig {
  const { replicas, cpu, mem, gpu } = compute;
  const config = apiSchema.parse({
    name: "managed",
    predictor: { path },
    compute: { ...(cpu == null ? {} : { cpu }), ...(mem == null ? {} : { mem }), gpu },
    networking: { endpoint },
    autoscaling: { min_replicas: replicas, max_replicas: replicas },
  });
  return { ...config, name } as DeployableConfig;
}
