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
  SELECT v.project_id, v.spec_json FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name AND a.api_id = v.api_id)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.end_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)
  UNION ALL SELECT project_id, '{}' FROM applications`;

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
  const rows = await db.all<{ project_id: string; spec_json: string }>(NEEDED);
  const users = new Set(
    rows.map(({ project_id, spec_json }) => environmentUser(project_id, pythonOf(spec_json))),
  );
  const workers = await allWorkers(db);
  const programs = workers.map(({ pid }) => programOf(pid)).filter((program) => program !== undefined);
  const gone = await environments.sweep({ users, programs }, { nowMs, keepMs });
  if (gone.length > 0)
    log.info({ event: "environments_removed", environments: gone }, "removed unused Python environments");
  return gone;
}

/** The Python that a version names; undefined if it names none, or cannot be read. */
function pythonOf(specJson: string): string | undefined {
  try {
    const { config } = JSON.parse(specJson) as { config?: { predictor?: { python?: string } } };
    return config?.predictor?.python ?? undefined;
  } catch {
    return undefined;
  }
}
