/** Removes the series of what is gone, in the transaction that removes it. */
import type { Statements } from "../database/database.ts";

/** A deleted API's. Those of its jobs go with the records of the jobs. */
export async function forgetApiSeries(tx: Statements, api: string): Promise<void> {
  await tx.run("DELETE FROM series_requests WHERE api_name = ?", [api]);
  await tx.run("DELETE FROM series_levels WHERE api_name = ?", [api]);
  await tx.run("DELETE FROM series_rejections WHERE api_name = ?", [api]);
  await tx.run("DELETE FROM api_changes WHERE api_name = ?", [api]);
  await tx.run("DELETE FROM series_batches WHERE api_name = ? AND job_id = ''", [api]);
}

export async function forgetJobSeries(tx: Statements, api: string, jobId: string): Promise<void> {
  await tx.run("DELETE FROM series_batches WHERE api_name = ? AND job_id = ?", [api, jobId]);
}
