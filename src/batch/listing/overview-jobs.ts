/** What the overview tells about jobs. Each statement reads an index alone, or a few rows. */
import { JOB_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import type { Statements } from "../../database/database.ts";
import type { JobRow } from "../records/job-rows.ts";
import { jobsByIds, newestIds } from "./find-jobs.ts";

const UNFINISHED = ["status_enqueuing", "status_running"] as const satisfies readonly JobStatus[];

/** The newest jobs that have not ended. */
export async function newestUnfinished(db: Statements, most: number): Promise<JobRow[]> {
  const rows = await jobsByIds(db, await newestIds(db, { statuses: UNFINISHED }, most));
  // It may have ended since.
  return rows.filter(({ end_time }) => end_time === null);
}

/** How many jobs of each API have not ended. */
export async function unfinishedByApi(db: Statements): Promise<Map<string, number>> {
  const rows = await db.all<{ api_name: string; jobs: number }>(
    "SELECT api_name, CAST(count(*) AS INTEGER) AS jobs FROM jobs WHERE end_time IS NULL GROUP BY api_name",
  );
  return new Map(rows.map(({ api_name, jobs }) => [api_name, jobs]));
}

/** How many jobs have each status; ended ones count also if their records are gone. */
export async function countByStatus(db: Statements): Promise<Map<JobStatus, number>> {
  const rows = await db.all<{ status: JobStatus; jobs: number }>(
    `SELECT status, CAST(sum(jobs) AS INTEGER) AS jobs FROM job_totals GROUP BY status
     UNION ALL SELECT status, CAST(count(*) AS INTEGER) FROM jobs
     WHERE status IN (${UNFINISHED.map(() => "?").join(", ")}) GROUP BY status`,
    UNFINISHED,
  );
  const counts = new Map<JobStatus, number>(JOB_STATUSES.map((status) => [status, 0]));
  for (const { status, jobs } of rows) counts.set(status, counts.get(status)! + jobs);
  return counts;
}

export type EndedBadly = Pick<JobRow, "job_id" | "api_name" | "status" | "reason_json"> & {
  end_time: string;
};

/** The last jobs that neither succeeded nor were stopped, and ended at `since` or later; the last end first. */
export function endedBadly(db: Statements, since: string, most: number): Promise<EndedBadly[]> {
  return db.all<EndedBadly>(
    `SELECT job_id, api_name, status, end_time, reason_json FROM jobs
     WHERE end_time IS NOT NULL AND status NOT IN ('status_succeeded', 'status_stopped') AND end_time >= ?
     ORDER BY end_time DESC, job_id DESC LIMIT ?`,
    [since, most],
  );
}

/** Since when APIs are paused. */
export async function pausedApis(db: Statements): Promise<Map<string, string>> {
  const rows = await db.all<{ name: string; paused_time: string }>(
    "SELECT name, paused_time FROM apis WHERE paused_time IS NOT NULL",
  );
  return new Map(rows.map(({ name, paused_time }) => [name, paused_time]));
}
