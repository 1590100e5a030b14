/**
 * Removes the last rows of a pruned job: after `--keep-records`, on request (`quern delete API --records`), or once no API
 * has that name, because then nobody can read them, and nothing else would ever remove them.
 */
import { IDEMPOTENCY_KEPT_MS } from "../../contracts/limits/submissions.ts";
import { type Database, first, type Statements } from "../../database/database.ts";
import { forgetJobSeries } from "../../series/forget-series.ts";
import type { JobRow } from "../records/job-rows.ts";

const HAS_API = "EXISTS (SELECT 1 FROM apis WHERE apis.name = jobs.api_name)";

/** The condition that somebody asked for it, for a statement about `jobs`. Jobs of a later API of that name stay. */
export const IS_ASKED_FOR = `EXISTS (SELECT 1 FROM forget_requests
  WHERE forget_requests.api_name = jobs.api_name AND jobs.created_time <= forget_requests.created_before)`;

/** The whole condition. Its parameters are `forgottenBefore`. */
export const IS_FORGOTTEN = `((end_time < ? AND NOT ${HAS_API}) OR end_time < ? OR ${IS_ASKED_FOR})`;

/**
 * Which ends are old enough: of jobs whose API is gone, and of all. As long as the job's `Idempotency-Key` counts, a
 * submission to an API of that name may find the job.
 */
export function forgottenBefore(nowMs: number, keepRecordsMs: number | undefined): [string, string] {
  const before = (ms: number) => new Date(nowMs - ms).toISOString();
  const ofAll = keepRecordsMs === undefined ? "" : before(Math.max(keepRecordsMs, IDEMPOTENCY_KEPT_MS));
  return [before(IDEMPOTENCY_KEPT_MS), ofAll];
}

/** Batches, segments, parts and the submission were removed before, with the job's data. */
const ROWS_WITH_THE_RECORD = ["job_configs", "job_outputs", "job_rounds", "jobs"];

type Forgotten = Pick<JobRow, "api_name"> & { has_api: number };

/** Few rows in one commit. Nothing is removed if the condition does not hold any more. */
export async function forgetJob(db: Database, jobId: string, before: readonly string[]): Promise<void> {
  const find = `SELECT api_name, CASE WHEN ${HAS_API} THEN 1 ELSE 0 END AS has_api
    FROM jobs WHERE job_id = ? AND pruned_time IS NOT NULL AND ${IS_FORGOTTEN}`;
  await db.transaction(async (tx) => {
    const job = await first<Forgotten>(tx, find, [jobId, ...before]);
    if (job === undefined) return;
    await forgetJobSeries(tx, job.api_name, jobId);
    for (const table of ROWS_WITH_THE_RECORD) await tx.run(`DELETE FROM ${table} WHERE job_id = ?`, [jobId]);
    if (job.has_api === 0) await forgetApi(tx, job.api_name);
  });
}

/** The versions of an API that is gone go with its last job. */
async function forgetApi(tx: Statements, apiName: string): Promise<void> {
  const last = "NOT EXISTS (SELECT 1 FROM jobs WHERE api_name = ?)";
  await tx.run(`DELETE FROM api_versions WHERE name = ? AND ${last}`, [apiName, apiName]);
  for (const table of ["job_totals", "job_durations"])
    await tx.run(`DELETE FROM ${table} WHERE api_name = ? AND ${last}`, [apiName, apiName]);
}

/**
 * Has the records of all jobs of an API removed that were created up to `time`, once they have ended. Resolves to their
 * number. In the transaction that deletes the API, so a kill leaves neither or both.
 */
export async function askToForget(tx: Statements, apiName: string, time: string): Promise<number> {
  const count = "SELECT count(*) AS jobs FROM jobs WHERE api_name = ? AND created_time <= ?";
  const { jobs } = (await first<{ jobs: number }>(tx, count, [apiName, time]))!;
  if (jobs === 0) return 0;
  await tx.run("DELETE FROM forget_requests WHERE api_name = ?", [apiName]);
  await tx.run("INSERT INTO forget_requests (api_name, created_before) VALUES (?, ?)", [apiName, time]);
  // A submission to a new API of that name must not find a job that is about to go.
  const theirs = "job_id IN (SELECT job_id FROM jobs WHERE api_name = ? AND created_time <= ?)";
  await tx.run(`DELETE FROM idempotency_keys WHERE api_name = ? AND ${theirs}`, [apiName, apiName, time]);
  return jobs;
}

/** Whether a former controller has not done all that it was asked for. */
export async function hasRequests(db: Database): Promise<boolean> {
  return (await first(db, "SELECT api_name FROM forget_requests LIMIT 1")) !== undefined;
}

/** Requests whose jobs are all gone are done. */
export async function endRequests(db: Database): Promise<void> {
  await db.run(
    `DELETE FROM forget_requests WHERE NOT EXISTS (SELECT 1 FROM jobs
       WHERE jobs.api_name = forget_requests.api_name AND jobs.created_time <= forget_requests.created_before)`,
  );
}
