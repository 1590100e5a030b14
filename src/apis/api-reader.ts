/** Reads the deployed APIs: their versions, states and numbers. Changes nothing. */
import { reportFault } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import { TimeSlices } from "../base/loop/turns.ts";
import { ServiceError } from "../contracts/errors.ts";
import { INSTALLATION_LONG_MS } from "../contracts/limits/configuration.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";
import { type Database, first, type Statements } from "../database/database.ts";
import { type ApiState, stateOf, stateOfUnreadable } from "./api-state.ts";
import { type ApiMetricsView, readMetrics } from "./records/api-metrics.ts";
import { type ApiOutline, ApiOutlines, outlineOf } from "./records/api-outlines.ts";
import {
  type AnyVersion,
  currentVersion,
  exactSpecText,
  isDeployed,
  readDeployed,
  readVersion,
  versionHistory,
} from "./records/api-rows.ts";
import { submittedText } from "./records/submitted-entry.ts";
import type { ApiReplicas } from "./serving/api-replicas.ts";

/** A configuration as JSON text, normalised or as it was submitted. */
export type ConfigForm = "spec" | "submitted";

/** For how long what a user of environments waits for is being installed. */
export type InstallingMs = (user: string) => number | undefined;

const TEXTS = { spec: exactSpecText, submitted: submittedText };

export class ApiReader {
  private readonly db: Database;
  private readonly replicas: ApiReplicas;
  private readonly installingMs: InstallingMs;
  private readonly outlines: ApiOutlines;
  /** The states of APIs without replicas. An outline is another object once anything in it has changed. */
  private readonly states = new WeakMap<ApiOutline, ApiState>();
  /** For all that read large configurations at once. */
  private readonly slices = new TimeSlices(SLICE_MS);

  constructor(db: Database, replicas: ApiReplicas, installingMs: InstallingMs) {
    this.db = db;
    this.installingMs = installingMs;
    this.replicas = replicas;
    this.outlines = new ApiOutlines(db);
  }

  /** Sorted by name. The state of an API without replicas is the same object until it changes. */
  async list(): Promise<ApiState[]> {
    return (await this.outlines.all()).map((outline) => this.outlinedState(outline));
  }

  /** Throws `api_not_found`. */
  async get(name: string): Promise<ApiState> {
    const outline = await this.outlines.find(name);
    if (outline === undefined) throw apiNotFound(name);
    return this.outlinedState(outline);
  }

  /** Throws `api_not_found`, or `wrong_state` if the version cannot be read. */
  async version(name: string): Promise<AnyVersion> {
    const {
      versions: [version],
      unreadable: [unreadable],
    } = await readDeployed(this.db, name);
    if (version !== undefined) return version;
    if (unreadable === undefined) throw apiNotFound(name);
    throw new ServiceError("wrong_state", `${name}: ${unreadable.why}`);
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

  /** The project of a version, "" if it has none; undefined if the version was removed. */
  async projectOf(name: string, apiId: string): Promise<string | undefined> {
    const sql = "SELECT project_id FROM api_versions WHERE name = ? AND api_id = ?";
    return (await first<{ project_id: string }>(this.db, sql, [name, apiId]))?.project_id;
  }

  /** The configuration of a version: `{}` if its row cannot be read, undefined if it was removed. */
  async configText(
    { name, api_id }: Pick<ApiState, "name" | "api_id">,
    form: ConfigForm,
  ): Promise<string | undefined> {
    const version = await readVersion(this.db, name, api_id);
    if (version === undefined) return undefined;
    if (this.slices.isOver) await this.slices.rest();
    return version === "unreadable" ? "{}" : TEXTS[form](version);
  }

  /** The response counts of a real-time API over the last two weeks. */
  metrics(name: string): Promise<ApiMetricsView> {
    return readMetrics(this.db, name);
  }

  stateOf(version: AnyVersion): ApiState {
    return this.outlinedState(outlineOf(version));
  }

  /** If the state of an API cannot be computed, that API is in error and the others are still listed. */
  private outlinedState(outline: ApiOutline): ApiState {
    try {
      return this.readableState(outline);
    } catch (error) {
      reportFault(error, `the state of API ${outline.name}`);
      return stateOfUnreadable({ ...outline, why: (error as Error).message });
    }
  }

  private readableState(outline: ApiOutline): ApiState {
    const group = this.replicas.group(outline.name);
    const installing = this.longInstallation(outline);
    if (group !== undefined || installing !== undefined) return stateOf(outline, group, installing);
    const known = this.states.get(outline) ?? stateOf(outline, undefined);
    this.states.set(outline, known);
    return known;
  }

  /** For how long the packages of a version are being installed; undefined if they are not. */
  installingMsOf(version: AnyVersion): number | undefined {
    const { user } = outlineOf(version);
    return user === undefined ? undefined : this.installingMs(user);
  }

  /** What to say about an installation that takes long. */
  private longInstallation({ user }: ApiOutline): string | undefined {
    const forMs = user === undefined ? undefined : this.installingMs(user);
    if (forMs === undefined || forMs < INSTALLATION_LONG_MS) return undefined;
    const since = new Date(wallMs() - forMs).toISOString();
    return `the installation of its packages began at ${since} and still runs; its log, or that of its job, shows how far it is; to end it, deploy other requirements or delete the API`;
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
