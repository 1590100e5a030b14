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

export async function jobSummary(db: Statements, apiName: string): Promise<JobSummary> {
  const running = await first<{ n: number }>(
    db,
    "SELECT count(*) AS n FROM jobs WHERE api_name = ? AND end_time IS NULL",
    [apiName],
  );
  const latest = await first<{ job_id: string; created_time: string }>(
    db,
    "SELECT job_id, created_time FROM jobs WHERE api_name = ? ORDER BY job_id DESC LIMIT 1",
    [apiName],
  );
  const api = await first<{ paused_time: string | null }>(db, "SELECT paused_time FROM apis WHERE name = ?", [
    apiName,
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

/** Those whose records are gone count too (end/forget-job.ts). */
const FORGOTTEN = "SELECT api_name AS api, status, jobs, succeeded, failed FROM forgotten_jobs";

/** About a millisecond of rows, so that other work runs between two pages. */
const SUMMED_AT_ONCE = 100;

export async function jobTotals(db: Statements): Promise<JobTotal[]> {
  const forgotten = await db.all<JobTotal>(FORGOTTEN);
  const sums = new Map(forgotten.map((total) => [`${total.api} ${total.status}`, { ...total }]));
  for (let after = ""; ; ) {
    const rows = await db.all<
      Pick<JobRow, "job_id" | "api_name" | "status" | "succeeded" | "failed_attempts">
    >(
      "SELECT job_id, api_name, status, succeeded, failed_attempts FROM jobs WHERE job_id > ? ORDER BY job_id LIMIT ?",
      [after, SUMMED_AT_ONCE],
    );
    for (const { api_name: api, status, succeeded, failed_attempts } of rows) {
      const key = `${api} ${status}`;
      const sum = sums.get(key) ?? { api, status, jobs: 0, succeeded: 0, failed: 0 };
      sums.set(key, sum);
      sum.jobs++;
      sum.succeeded += succeeded;
      sum.failed += failed_attempts;
    }
    if (rows.length < SUMMED_AT_ONCE) break;
    after = rows.at(-1)!.job_id;
  }
  return [...sums.values()].sort((a, b) => (a.api + a.status < b.api + b.status ? -1 : 1));
}
