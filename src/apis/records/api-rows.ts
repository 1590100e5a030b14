/** The database rows of APIs and their versions. A version is kept as long as a job may need it. */
import { createHash } from "node:crypto";
import { newToken } from "../../base/ids.ts";
import { parseExact, stringifyWithRaw } from "../../base/json/exact.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import { type Database, first, type Statements } from "../../database/database.ts";
import type { DeployableConfig, SplitterConfig } from "../config/parse-config.ts";
import { forgetMetrics } from "./api-metrics.ts";

export interface ApiVersion {
  name: string;
  api_id: string;
  predictor_id: string;
  project_id: string;
  deployed_time: string;
  config: DeployableConfig;
  /** `predictor.config` as JSON text. */
  configText: string;
  /** The entry as submitted, as JSON text. Versions of older releases and APIs of applications have none. */
  submitted?: string;
}

/** A TrafficSplitter, which has no predictor and no workers. */
export interface SplitterVersion extends Omit<ApiVersion, "config"> {
  config: SplitterConfig;
}

export type AnyVersion = ApiVersion | SplitterVersion;

export function hasPredictor(version: AnyVersion): version is ApiVersion {
  return version.config.kind !== "TrafficSplitter";
}

export function isSplitter(version: AnyVersion): version is SplitterVersion {
  return !hasPredictor(version);
}

interface VersionRow extends Omit<ApiVersion, "config" | "configText" | "submitted"> {
  spec_json: string;
}

/** The ids of an API with this content: the same content has the same ids (docs/contract/configuration.md#identity). */
export function identityOf(
  config: DeployableConfig | SplitterConfig,
  configText: string,
  projectId: string,
): { api_id: string; predictor_id: string } {
  const { name, kind, predictor, compute, monitoring } = config;
  const hash = (value: unknown) =>
    createHash("sha256")
      .update(JSON.stringify([value, configText, projectId]))
      .digest("hex")
      .slice(0, 24);
  return { api_id: hash(config), predictor_id: hash({ name, kind, predictor, compute, monitoring }) };
}

export interface UnreadableApi extends Pick<ApiVersion, "name" | "api_id" | "deployed_time"> {
  kind: AnyVersion["config"]["kind"];
  why: string;
}

/** The deployed APIs, read one by one, so that an unreadable row does not affect the other APIs. */
export interface Deployed {
  versions: AnyVersion[];
  /** These APIs are still deployed, and must not be treated as deleted. */
  unreadable: UnreadableApi[];
}

const DEPLOYED =
  "SELECT v.*, a.kind FROM apis a JOIN api_versions v ON v.name = a.name AND v.api_id = a.api_id WHERE a.name = ?";

/** A configuration of 256 KiB takes some milliseconds. All who read many share these slices. */
const SLICES = new TimeSlices(SLICE_MS);

/**
 * Reads the current versions of all deployed APIs, sorted by name, or of one API only. APIs may be deployed and deleted
 * meanwhile.
 */
export async function readDeployed(db: Database, name?: string): Promise<Deployed> {
  const deployed: Deployed = { versions: [], unreadable: [] };
  for (const each of name === undefined ? await deployedNames(db) : [name]) {
    await readInto(deployed, db, each);
    if (SLICES.isOver) await SLICES.rest();
  }
  return deployed;
}

async function deployedNames(db: Database): Promise<string[]> {
  const rows = await db.all<{ name: string }>("SELECT name FROM apis ORDER BY name");
  return rows.map(({ name }) => name);
}

/** Changes nothing if the API is not deployed any more. */
async function readInto(deployed: Deployed, db: Database, name: string): Promise<void> {
  const found = await first<VersionRow & Pick<UnreadableApi, "kind">>(db, DEPLOYED, [name]);
  if (found === undefined) return;
  const { kind, ...row } = found;
  try {
    deployed.versions.push(toVersion(row));
  } catch (error) {
    const { api_id, deployed_time } = row;
    const why = `its row in the database cannot be read (${(error as Error).message}); deploy it again`;
    deployed.unreadable.push({ name, kind, api_id, deployed_time, why });
  }
}

/** The current versions that can be read. */
export async function allCurrent(db: Database): Promise<AnyVersion[]> {
  return (await readDeployed(db)).versions;
}

/** True even if the API's version cannot be read. */
export async function isDeployed(db: Statements, name: string): Promise<boolean> {
  return (await first(db, "SELECT name FROM apis WHERE name = ?", [name])) !== undefined;
}

export async function currentVersion(db: Database, name: string): Promise<AnyVersion | undefined> {
  const row = await first<VersionRow>(
    db,
    "SELECT v.* FROM apis a JOIN api_versions v ON v.name = a.name AND v.api_id = a.api_id WHERE a.name = ?",
    [name],
  );
  return row === undefined ? undefined : toVersion(row);
}

export async function findVersion(
  db: Database,
  name: string,
  apiId: string,
): Promise<AnyVersion | undefined> {
  const row = await versionRow(db, name, apiId);
  return row === undefined ? undefined : toVersion(row);
}

/** The same, but an unreadable row is no error. */
export async function readVersion(
  db: Database,
  name: string,
  apiId: string,
): Promise<AnyVersion | "unreadable" | undefined> {
  const row = await versionRow(db, name, apiId);
  try {
    return row === undefined ? undefined : toVersion(row);
  } catch {
    return "unreadable";
  }
}

/** The APIs that have or had a version with these files. */
export async function apisOfProject(db: Database, projectId: string): Promise<string[]> {
  const sql = "SELECT DISTINCT name FROM api_versions WHERE project_id = ?";
  return (await db.all<{ name: string }>(sql, [projectId])).map(({ name }) => name);
}

/**
 * A version by its predictor's id. A refresh changes only what follows the `~`, so that a version is also found by an id
 * from before it.
 */
export async function versionOfPredictor(
  db: Database,
  name: string,
  predictorId: string,
): Promise<ApiVersion | undefined> {
  const content = predictorId.replace(/~.*$/, "");
  const sql = `SELECT * FROM api_versions WHERE name = ? AND (predictor_id = ? OR predictor_id LIKE ?)
    ORDER BY deployed_time DESC LIMIT 1`;
  const row = await first<VersionRow>(db, sql, [name, content, `${content}~%`]);
  const version = row === undefined ? undefined : toVersion(row);
  return version !== undefined && hasPredictor(version) ? version : undefined;
}

function versionRow(db: Database, name: string, apiId: string): Promise<VersionRow | undefined> {
  return first(db, "SELECT * FROM api_versions WHERE name = ? AND api_id = ?", [name, apiId]);
}

/** The versions that were deployed under this name, newest first. */
export function versionHistory(
  db: Database,
  name: string,
): Promise<Pick<ApiVersion, "api_id" | "deployed_time">[]> {
  const sql = "SELECT api_id, deployed_time FROM api_versions WHERE name = ? ORDER BY deployed_time DESC";
  return db.all(sql, [name]);
}

/** Gives the version a new predictor id: its replicas become outdated, and new ones start. */
export async function renewPredictorId(
  db: Database,
  { name, api_id, predictor_id }: AnyVersion,
): Promise<void> {
  const renewed = `${predictor_id.replace(/~.*$/, "")}~${newToken().slice(0, 8)}`;
  await db.run("UPDATE api_versions SET predictor_id = ? WHERE name = ? AND api_id = ?", [
    renewed,
    name,
    api_id,
  ]);
}

/** Something that belongs into the transaction of a change. */
export type InTransaction = (tx: Statements) => Promise<void>;

/**
 * Deletes an API and its versions, and does `also`. Versions that jobs use stay, so that the status of those jobs can
 * still be read.
 */
export async function deleteApi(db: Database, name: string, also?: InTransaction): Promise<void> {
  await db.transaction(async (tx) => {
    await also?.(tx);
    await tx.run("DELETE FROM apis WHERE name = ?", [name]);
    await forgetMetrics(tx, name);
    // With jobs left, these go with the last of them (batch/end/forget-job.ts).
    for (const table of ["job_totals", "job_durations"])
      await tx.run(
        `DELETE FROM ${table} WHERE api_name = ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE api_name = ?)`,
        [name, name],
      );
    await tx.run(
      "DELETE FROM api_versions WHERE name = ? AND api_id NOT IN (SELECT api_id FROM jobs WHERE api_name = ?)",
      [name, name],
    );
  });
}

/** The configuration as it was submitted, with every number as it was written. */
export function exactSpec({ config, configText }: AnyVersion): unknown {
  const { predictor } = config;
  if (predictor?.config == null) return config;
  return { ...config, predictor: { ...predictor, config: parseExact(configText) } };
}

/** The same as JSON text, without parsing `predictor.config`. */
export function exactSpecText({ config, configText }: AnyVersion): string {
  const { predictor } = config;
  if (predictor?.config == null) return JSON.stringify(config);
  return stringifyWithRaw(config, { predictor: stringifyWithRaw(predictor, { config: configText }) });
}

function toVersion({ spec_json, ...row }: VersionRow): AnyVersion {
  const stored = JSON.parse(spec_json) as Pick<AnyVersion, "config" | "configText" | "submitted"> | null;
  if (typeof stored?.config?.kind !== "string" || typeof stored.configText !== "string")
    throw new Error("there is no configuration in it");
  return { ...row, ...stored } as AnyVersion;
}
