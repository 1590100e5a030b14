/**
 * Removes Python environments that have not been needed for a while. A deployed version, a job that has not ended, an
 * application and a worker need theirs. Former versions do not: a rollback creates a removed environment again.
 */
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { programOf } from "../../base/process-identity.ts";
import type { Database } from "../../database/database.ts";
import { allWorkers } from "../../database/worker-rows.ts";
import { environmentUser } from "../../engine/environments/environment-uses.ts";
import type { PythonEnvironments } from "../../engine/environments/python-environment.ts";

const NEEDED = `
  SELECT v.project_id,
    CASE WHEN json_valid(v.spec_json) THEN json_extract(v.spec_json, '$.config.predictor.python') END AS python
  FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name AND a.api_id = v.api_id)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.end_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)
  UNION SELECT project_id, NULL FROM applications`;

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
  const rows = await db.all<{ project_id: string; python: string | null }>(NEEDED);
  const users = new Set(
    rows.map(({ project_id, python }) => environmentUser(project_id, python ?? undefined)),
  );
  const workers = await allWorkers(db);
  const programs = workers.map(({ pid }) => programOf(pid)).filter((program) => program !== undefined);
  const gone = await environments.sweep({ users, programs }, { nowMs, keepMs });
  if (gone.length > 0) log.info({ environments: gone }, "removed unused Python environments");
  return gone;
}
