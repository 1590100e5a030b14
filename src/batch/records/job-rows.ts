/** The rows of jobs: what a row has, how one is made, and how one is found. */
import type { JobReason, JobStatus } from "../../contracts/jobs.ts";
import { first, type Statements } from "../../database/database.ts";

/** A job's row. What may be large has tables of its own: its input (`storedInput`) and its `config` (`configText`). */
export interface JobRow {
  job_id: string;
  api_name: string;
  api_id: string;
  workers: number;
  timeout_s: number | null;
  /** Attempts of each batch. */
  max_receive_count: number;
  dead_letter_arn: string | null;
  dead_letter_queue: string | null;
  status: JobStatus;
  closing: JobStatus | null;
  reason_json: string | null;
  round: number;
  epoch: number;
  total_batch_count: number | null;
  enqueued_batches: number;
  enqueue_cursor_json: string | null;
  succeeded: number;
  failed_attempts: number;
  failed_batches: number;
  success_us: number;
  created_time: string;
  start_time: string | null;
  end_time: string | null;
  /** Null in the first round. */
  round_started_time: string | null;
  pruned_time: string | null;
  /** Why the job is paused (paused-jobs.ts); null if it is not. */
  paused: string | null;
  paused_time: string | null;
  /** 1: the submission used names of Cortex, so its records also have `sqs_url`. */
  has_older_names: number;
  /** 1: `on_failure: isolate`. */
  isolates: number;
  /** How often in a row a controller died while it enqueued this job, and got no further. */
  enqueuing_deaths: number;
  /** Since when the job waits for its first worker of this round; null once one was ready. */
  queued_time: string | null;
  /** -100 to 100. */
  priority: number;
}

/** In the order of the row's fields. */
export const JOB_COLUMNS = `job_id, api_name, api_id, workers, timeout_s, max_receive_count, dead_letter_arn, dead_letter_queue,
  status, closing, reason_json, round, epoch, total_batch_count, enqueued_batches, enqueue_cursor_json, succeeded,
  failed_attempts, failed_batches, success_us, created_time, start_time, end_time, round_started_time, pruned_time,
  paused, paused_time, has_older_names, isolates, enqueuing_deaths, queued_time, priority`;

export type NewJob = Pick<
  JobRow,
  | "job_id"
  | "api_name"
  | "api_id"
  | "workers"
  | "timeout_s"
  | "max_receive_count"
  | "dead_letter_arn"
  | "dead_letter_queue"
  | "created_time"
  | "has_older_names"
> & {
  submission_json: string;
  config_json: string;
  isolates?: number;
  priority?: number;
  /** Since when its API is paused. */
  paused_time?: string | null;
};

/** Three rows: run it in a transaction. */
/** `paused` and `paused_time` of a round that begins while its API is paused, or is not. */
export function pausedWith(
  apiPausedTime: string | null | undefined,
  now: string,
): [string | null, string | null] {
  return apiPausedTime == null ? [null, null] : ["api", now];
}

export async function insertJob(tx: Statements, job: NewJob): Promise<void> {
  await tx.run(
    `INSERT INTO jobs (job_id, api_name, api_id, workers, timeout_s, max_receive_count, dead_letter_arn,
       dead_letter_queue, status, created_time, has_older_names, isolates, queued_time, priority, paused,
       paused_time)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'status_enqueuing', ?, ?, ?, ?, ?, ?, ?)`,
    [
      job.job_id,
      job.api_name,
      job.api_id,
      job.workers,
      job.timeout_s,
      job.max_receive_count,
      job.dead_letter_arn,
      job.dead_letter_queue,
      job.created_time,
      job.has_older_names,
      job.isolates ?? 0,
      job.created_time,
      job.priority ?? 0,
      ...pausedWith(job.paused_time, job.created_time),
    ],
  );
  await tx.run("INSERT INTO job_submissions VALUES (?, ?)", [job.job_id, job.submission_json]);
  if (job.config_json !== "{}")
    await tx.run("INSERT INTO job_configs VALUES (?, ?)", [job.job_id, job.config_json]);
}

export function findJob(db: Statements, apiName: string, jobId: string): Promise<JobRow | undefined> {
  return first<JobRow>(db, `SELECT ${JOB_COLUMNS} FROM jobs WHERE job_id = ? AND api_name = ?`, [
    jobId,
    apiName,
  ]);
}

export function jobById(db: Statements, jobId: string): Promise<JobRow | undefined> {
  return first<JobRow>(db, `SELECT ${JOB_COLUMNS} FROM jobs WHERE job_id = ?`, [jobId]);
}

/** The submitter's `config`, as text; `{}` if there was none. */
export async function configText(db: Statements, jobId: string): Promise<string> {
  const sql = "SELECT config_json FROM job_configs WHERE job_id = ?";
  return (await first<{ config_json: string }>(db, sql, [jobId]))?.config_json ?? "{}";
}

export function reasonOf(row: JobRow): JobReason | undefined {
  return row.reason_json === null ? undefined : (JSON.parse(row.reason_json) as JobReason);
}
