/** Counts jobs: those of one API for the table of APIs, and all of them for the metrics. */
import { QUEUES_COUNTED_MAX } from "../../contracts/limits/jobs.ts";
import { first, type Statements } from "../../database/database.ts";
import type { JobRow } from "./job-rows.ts";

/** No name of a queue has parentheses. */
const OTHER_QUEUES = "(others)";

/** An API's jobs, for the table of APIs. */
export interface JobSummary {
  running_jobs: number;
  latest_job: { job_id: string; created_time: string } | null;
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
  return { running_jobs: running!.n, latest_job: latest ?? null };
}

export interface JobTotals {
  /** Numbers of jobs by API and status, with their succeeded batches and failed attempts. */
  byApi: { api: string; status: string; jobs: number; succeeded: number; failed: number }[];
  /** Messages of a limited number of queues, and of all others together. */
  letters: { queue: string; messages: number }[];
}

/** About a millisecond of rows, so that other work runs between two pages. */
const SUMMED_AT_ONCE = 100;

export async function jobTotals(db: Statements): Promise<JobTotals> {
  const sums = new Map<string, JobTotals["byApi"][number]>();
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
  return {
    byApi: [...sums.values()].sort((a, b) => (a.api + a.status < b.api + b.status ? -1 : 1)),
    letters: await letterTotals(db),
  };
}

/** Queues of one statement: some milliseconds, unless one is long. */
const QUEUES_AT_ONCE = 500;

/**
 * Submissions choose the names of queues, and each name takes a label. The queues with the oldest messages keep theirs,
 * whatever is submitted later; the rest are counted together.
 */
async function letterTotals(db: Statements): Promise<JobTotals["letters"]> {
  let oldest: { queue: string; messages: number; oldest_id: string }[] = [];
  let others = 0;
  for (let after = ""; ; ) {
    const rows = await db.all<(typeof oldest)[number]>(
      `SELECT queue, count(*) AS messages, min(message_id) AS oldest_id FROM letters WHERE queue > ?
       GROUP BY queue ORDER BY queue LIMIT ?`,
      [after, QUEUES_AT_ONCE],
    );
    oldest = [...oldest, ...rows].sort((a, b) => (a.oldest_id < b.oldest_id ? -1 : 1));
    for (const { messages } of oldest.splice(QUEUES_COUNTED_MAX)) others += messages;
    if (rows.length < QUEUES_AT_ONCE) break;
    after = rows.at(-1)!.queue;
  }
  const counted = oldest
    .map(({ queue, messages }) => ({ queue, messages }))
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
  return others === 0 ? counted : [...counted, { queue: OTHER_QUEUES, messages: others }];
}
