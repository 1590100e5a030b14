/** Counts jobs: those of one API for the table of APIs, and all of them for the metrics. */
import { first, type Statements } from "../../database/database.ts";
import type { JobRow } from "./job-rows.ts";

/** An API's jobs, for the table of APIs. */
export interface JobSummary {
  running_jobs: number;
  latest_job: { job_id: string; created_time: string } | null;
  /** Since when the API is paused. */
  paused_time?: string;
}

/** Its statements wait together: each alone would wait for a commit of the jobs that run. */
export async function jobSummary(db: Statements, apiName: string): Promise<JobSummary> {
  const [running, latest, api] = await Promise.all([
    first<{ n: number }>(db, "SELECT count(*) AS n FROM jobs WHERE api_name = ? AND end_time IS NULL", [
      apiName,
    ]),
    first<{ job_id: string; created_time: string }>(
      db,
      "SELECT job_id, created_time FROM jobs WHERE api_name = ? ORDER BY job_id DESC LIMIT 1",
      [apiName],
    ),
    first<{ paused_time: string | null }>(db, "SELECT paused_time FROM apis WHERE name = ?", [apiName]),
  ]);
  const paused = api?.paused_time == null ? {} : { paused_time: api.paused_time };
  return { running_jobs: running!.n, latest_job: latest ?? null, ...paused };
}

/** The jobs of an API with one status: their number, succeeded batches and failed attempts. */
export interface JobTotal {
  api: string;
  status: string;
  jobs: number;
  succeeded: number;
  failed: number;
}

type Counted = Pick<JobRow, "api_name" | "status" | "succeeded" | "failed_attempts">;

/** In the transaction in which a job ends (`by` 1), or a new round of an ended one begins (-1). */
export async function countEnded(tx: Statements, job: Counted, by: 1 | -1): Promise<void> {
  await tx.run(
    `INSERT INTO job_totals (api_name, status, jobs, succeeded, failed) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (api_name, status) DO UPDATE SET jobs = job_totals.jobs + excluded.jobs,
       succeeded = job_totals.succeeded + excluded.succeeded, failed = job_totals.failed + excluded.failed`,
    [job.api_name, job.status, by, by * job.succeeded, by * job.failed_attempts],
  );
}

/**
 * Ended jobs have been counted, also those whose records are gone; only those in progress are read. One statement, so
 * that a job that ends meanwhile counts once.
 */
const TOTALS = `SELECT api_name AS api, status, jobs, succeeded, failed FROM job_totals
  UNION ALL SELECT api_name, status, 1, succeeded, failed_attempts FROM jobs WHERE end_time IS NULL`;

export async function jobTotals(db: Statements): Promise<JobTotal[]> {
  const sums = new Map<string, JobTotal>();
  for (const { api, status, jobs, succeeded, failed } of await db.all<JobTotal>(TOTALS)) {
    const key = `${api} ${status}`;
    const sum = sums.get(key) ?? { api, status, jobs: 0, succeeded: 0, failed: 0 };
    sums.set(key, sum);
    sum.jobs += jobs;
    sum.succeeded += succeeded;
    sum.failed += failed;
  }
  return [...sums.values()].sort((a, b) => (a.api + a.status < b.api + b.status ? -1 : 1));
}
