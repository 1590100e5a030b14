/**
 * Removes the last rows of a pruned job whose API is gone. Nobody can read them any more, and nothing else would ever
 * remove them. They stay as long as an API of that name exists, also if it was deleted and deployed again.
 */
import { IDEMPOTENCY_KEPT_MS } from "../../contracts/limits/submissions.ts";
import { type Database, first } from "../../database/database.ts";

/**
 * The condition, for a statement about `jobs`. Its parameter is `forgottenBefore`: as long as the job's
 * `Idempotency-Key` counts, a submission to a new API of that name may find the job.
 */
export const IS_FORGOTTEN =
  "end_time < ? AND NOT EXISTS (SELECT 1 FROM apis WHERE apis.name = jobs.api_name)";

export function forgottenBefore(nowMs: number): string {
  return new Date(nowMs - IDEMPOTENCY_KEPT_MS).toISOString();
}

/** Batches, segments, parts and the submission were removed before, with the job's data. */
const ROWS_WITH_THE_RECORD = ["job_configs", "job_outputs", "jobs"];

/**
 * Few rows in one commit. The versions of the API go with its last job. Nothing is removed if an API of that name has
 * been deployed meanwhile.
 */
export async function forgetJob(db: Database, jobId: string, nowMs: number): Promise<void> {
  const find = `SELECT api_name FROM jobs WHERE job_id = ? AND pruned_time IS NOT NULL AND ${IS_FORGOTTEN}`;
  await db.transaction(async (tx) => {
    const gone = await first<{ api_name: string }>(tx, find, [jobId, forgottenBefore(nowMs)]);
    if (gone === undefined) return;
    for (const table of ROWS_WITH_THE_RECORD) await tx.run(`DELETE FROM ${table} WHERE job_id = ?`, [jobId]);
    await tx.run(
      "DELETE FROM api_versions WHERE name = ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE api_name = ?)",
      [gone.api_name, gone.api_name],
    );
  });
}
