/**
 * Removes Python environments that have not been needed for a while. A deployed version, a job that has not ended, an
 * application and a worker need theirs. Former versions do not: a rollback creates a removed environment again.
 */
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { programOf } from "../../base/process-identity.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import type { Database } from "../../database/database.ts";
import { allWorkers } from "../../database/worker-rows.ts";
import { environmentUser } from "../../engine/environments/environment-uses.ts";
import type { PythonEnvironments } from "../../engine/environments/python-environment.ts";
import { type AnyVersion, readVersion } from "../records/api-rows.ts";

const SLICES = new TimeSlices(SLICE_MS);

const NEEDED_VERSIONS = `
  SELECT v.project_id, v.name, v.api_id FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name AND a.api_id = v.api_id)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.end_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)`;

type NeededVersion = Pick<AnyVersion, "project_id" | "name" | "api_id">;

export interface EnvironmentSweepOptions {
  db: Database;
  log: Log;
  environments: PythonEnvironments;
  /** How long an environment is kept since it was last needed, in milliseconds. */
  keepMs: number;
}

/** Returns the ids of the removed environments. */
export async function sweepEnvironments(options: EnvironmentSweepOptions): Promise<string[]> {
  const { db, log, environments, keepMs } = options;
  // Environments that are prepared from now on are newer than this time.
  const nowMs = wallMs();
  const users = await environmentUsers(db);
  const workers = await allWorkers(db);
  const programs = workers.map(({ pid }) => programOf(pid)).filter((program) => program !== undefined);
  const gone = await environments.sweep({ users, programs }, { nowMs, keepMs });
  if (gone.length > 0)
    log.info({ event: "environments_removed", environments: gone }, "removed unused Python environments");
  return gone;
}

/** All that need an environment. */
export async function environmentUsers(db: Database): Promise<Set<string>> {
  return new Set([...(await usersOfVersions(db)), ...(await usersOfApplications(db))]);
}

async function usersOfVersions(db: Database): Promise<string[]> {
  const users: string[] = [];
  for (const version of await db.all<NeededVersion>(NEEDED_VERSIONS)) {
    users.push(environmentUser(version.project_id, await pythonOf(db, version)));
    if (SLICES.isOver) await SLICES.rest();
  }
  return users;
}

async function usersOfApplications(db: Database): Promise<string[]> {
  const rows = await db.all<{ project_id: string }>("SELECT project_id FROM applications");
  return rows.map(({ project_id }) => environmentUser(project_id, undefined));
}

/** The Python that a version names; undefined if it names none, or cannot be read. */
async function pythonOf(db: Database, { name, api_id }: NeededVersion): Promise<string | undefined> {
  const version = await readVersion(db, name, api_id);
  return version === undefined || version === "unreadable" ? undefined : version.config.predictor?.python;
}
