/**
 * Removes Python environments that have not been needed for a while. A deployed version, a job that has not ended, an
 * application and a worker need theirs. Former versions do not: a rollback creates a removed environment again.
 */
import { TimeSlices, wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { programOf } from "../../base/process-identity.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import type { Database } from "../../database/database.ts";
import { allWorkers } from "../../database/worker-rows.ts";
import { environmentUser } from "../../engine/environments/environment-uses.ts";
import type { PythonEnvironments } from "../../engine/environments/python-environment.ts";
import { readVersion } from "../records/api-rows.ts";

const SLICES = new TimeSlices(SLICE_MS);

const NEEDED = `
  SELECT v.project_id, v.name, v.api_id FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name AND a.api_id = v.api_id)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.end_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)
  UNION ALL SELECT project_id, '', '' FROM applications`;

interface Needed {
  project_id: string;
  /** Of an API's version; empty for an application. */
  name: string;
  api_id: string;
}

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
  const users = new Set<string>();
  for (const needed of await db.all<Needed>(NEEDED)) {
    users.add(environmentUser(needed.project_id, await pythonOf(db, needed)));
    if (SLICES.isOver) await SLICES.rest();
  }
  const workers = await allWorkers(db);
  const programs = workers.map(({ pid }) => programOf(pid)).filter((program) => program !== undefined);
  const gone = await environments.sweep({ users, programs }, { nowMs, keepMs });
  if (gone.length > 0)
    log.info({ event: "environments_removed", environments: gone }, "removed unused Python environments");
  return gone;
}

/** The Python that a version names; undefined if it names none, or cannot be read. */
async function pythonOf(db: Database, { name, api_id }: Needed): Promise<string | undefined> {
  if (name === "") return undefined;
  const version = await readVersion(db, name, api_id);
  return version === undefined || version === "unreadable" ? undefined : version.config.predictor?.python;
}
