/** Reads many jobs: an API's, a page at a time; those that a new controller resumes; those that still exist. */
import type { JobStatus } from "../../contracts/jobs.ts";
import { LIST_ROWS_AT_ONCE } from "../../contracts/limits/responses.ts";
import type { Statements } from "../../database/database.ts";
import { JOB_COLUMNS, type JobRow } from "./job-rows.ts";

export interface JobPage {
  limit: number;
  /** The last job id of the previous page. */
  before: string | undefined;
  status: JobStatus | undefined;
}

/** Newest first. */
export function listJobs(
  db: Statements,
  apiName: string,
  { limit, before, status }: JobPage,
): Promise<JobRow[]> {
  const filter = status === undefined ? "" : "AND status = ?";
  return db.all<JobRow>(
    `SELECT ${JOB_COLUMNS} FROM jobs WHERE api_name = ? AND job_id < ? ${filter} ORDER BY job_id DESC LIMIT ?`,
    [apiName, before ?? "~", ...(status === undefined ? [] : [status]), limit],
  );
}

/** Like `listJobs`, a few rows at a time. The generator returns whether there are more than `limit`. */
export async function* jobPages(
  db: Statements,
  apiName: string,
  page: JobPage,
): AsyncGenerator<JobRow[], boolean> {
  let { before } = page;
  for (let left = page.limit; left > 0; ) {
    const limit = Math.min(LIST_ROWS_AT_ONCE, left);
    const rows = await listJobs(db, apiName, { ...page, before, limit: limit + 1 });
    const some = rows.slice(0, limit);
    if (some.length > 0) yield some;
    if (rows.length <= limit) return false;
    before = some.at(-1)!.job_id;
    left -= limit;
  }
  return true;
}

/** Which of these ids are jobs. */
export async function existingJobs(db: Statements, ids: readonly string[]): Promise<Set<string>> {
  const places = ids.map(() => "?").join(", ");
  const rows = await db.all<{ job_id: string }>(`SELECT job_id FROM jobs WHERE job_id IN (${places})`, ids);
  return new Set(rows.map(({ job_id }) => job_id));
}

/** The columns needed to resume a job. Only these, because there may be many jobs. */
export type UnfinishedJob = Pick<JobRow, "job_id" | "round" | "api_name" | "closing" | "paused">;

/** Oldest first. It is sorted here, because an ORDER BY by the id makes SQLite scan all jobs. */
export async function unfinishedJobs(db: Statements): Promise<UnfinishedJob[]> {
  const sql = "SELECT job_id, round, api_name, closing, paused FROM jobs WHERE end_time IS NULL";
  const rows = await db.all<UnfinishedJob>(sql);
  return rows.sort((a, b) => (a.job_id < b.job_id ? -1 : 1));
}
