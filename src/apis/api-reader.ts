/** Reads the deployed APIs: their versions, states and numbers. Changes nothing. */
import { reportFault } from "../base/boundary.ts";
import { ServiceError } from "../contracts/errors.ts";
import { type Database, first, type Statements } from "../database/database.ts";
import { type ApiState, stateOf, stateOfUnreadable } from "./api-state.ts";
import { type ApiMetricsView, readMetrics } from "./records/api-metrics.ts";
import {
  type AnyVersion,
  currentVersion,
  isDeployed,
  readDeployed,
  type UnreadableApi,
  versionHistory,
} from "./records/api-rows.ts";
import { submittedEntry } from "./records/submitted-entry.ts";
import type { Replicas } from "./replicas/replicas.ts";

export class ApiReader {
  private readonly db: Database;
  private readonly replicas: Replicas;

  constructor(db: Database, replicas: Replicas) {
    this.db = db;
    this.replicas = replicas;
  }

  async list(): Promise<ApiState[]> {
    const { versions, unreadable } = await readDeployed(this.db);
    const states = [
      ...versions.map((version) => this.stateOf(version)),
      ...unreadable.map(stateOfUnreadable),
    ];
    return states.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Throws `api_not_found`. */
  async get(name: string): Promise<ApiState> {
    const found = await this.read(name);
    return "why" in found ? stateOfUnreadable(found) : this.stateOf(found);
  }

  /** Throws `api_not_found`, or `wrong_state` if the version cannot be read. */
  async version(name: string): Promise<AnyVersion> {
    const found = await this.read(name);
    if ("why" in found) throw new ServiceError("wrong_state", `${name}: ${found.why}`);
    return found;
  }

  findVersion(name: string): Promise<AnyVersion | undefined> {
    return currentVersion(this.db, name);
  }

  isDeployed(name: string): Promise<boolean> {
    return isDeployed(this.db, name);
  }

  /** The versions that were deployed under this name, newest first. */
  history(name: string): Promise<Pick<AnyVersion, "api_id" | "deployed_time">[]> {
    return versionHistory(this.db, name);
  }

  /** The configuration entry from which the API was deployed. */
  async submitted(name: string): Promise<unknown> {
    const found = await this.read(name);
    return "why" in found ? {} : submittedEntry(found);
  }

  /** The response counts of a real-time API over the last two weeks. */
  metrics(name: string): Promise<ApiMetricsView> {
    return readMetrics(this.db, name);
  }

  /** If the state of an API cannot be computed, that API is in error and the others are still listed. */
  stateOf(version: AnyVersion): ApiState {
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
    return stateOf(version, this.replicas.group(version.name));
  }

  private async read(name: string): Promise<AnyVersion | UnreadableApi> {
    const { versions, unreadable } = await readDeployed(this.db, name);
    const [found] = [...versions, ...unreadable];
    if (found === undefined) throw apiNotFound(name);
    return found;
  }
}

/**
 * Throws `api_not_found`. In a transaction, so that a deletion comes before it or after it. Resolves to the time since
 * when the API is paused, or null.
 */
export async function assertDeployed(tx: Statements, name: string): Promise<string | null> {
  const api = await first<{ paused_time: string | null }>(tx, "SELECT paused_time FROM apis WHERE name = ?", [
    name,
  ]);
  if (api === undefined) throw apiNotFound(name);
  return api.paused_time;
}

/** Records since when an API is paused; null: it is not. Throws `api_not_found`. */
export async function setApiPaused(tx: Statements, name: string, time: string | null): Promise<void> {
  const changed = await tx.run("UPDATE apis SET paused_time = ? WHERE name = ?", [time, name]);
  if (changed === 0) throw apiNotFound(name);
}

export function apiNotFound(name: string): ServiceError {
  return new ServiceError("api_not_found", `${name} is not deployed; \`quern get\` shows what is`);
}
