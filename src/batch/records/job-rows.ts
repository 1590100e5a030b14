/**
 * The rows of jobs. Updates by a run carry the owner's epoch, and status changes use `where status in (…)`. A write by
 * a former owner, or one that comes too late, changes nothing and returns that.
 */
import type { JobReason, JobStatus } from "../../contracts/jobs.ts";
import { LIST_ROWS_AT_ONCE } from "../../contracts/limits/responses.ts";
import { type Database, first, type Statements } from "../../database/database.ts";
import { type Ending, movesInto } from "./job-status.ts";

/**
 * A job's row without two columns that may be large and are rarely needed: its input (`storedInput`) and its `config`
 * (`configText`).
 */
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
}

/** In the order of the row's fields. */
const COLUMNS = `job_id, api_name, api_id, workers, timeout_s, max_receive_count, dead_letter_arn, dead_letter_queue,
  status, closing, reason_json, round, epoch, total_batch_count, enqueued_batches, enqueue_cursor_json, succeeded,
  failed_attempts, failed_batches, success_us, created_time, start_time, end_time, round_started_time, pruned_time,
  paused, paused_time, has_older_names`;

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
> & { submission_json: string; config_json: string };

export async function insertJob(db: Statements, job: NewJob): Promise<void> {
  await db.run(
    `INSERT INTO jobs (job_id, api_name, api_id, submission_json, config_json, workers, timeout_s, max_receive_count,
       dead_letter_arn, dead_letter_queue, status, created_time, has_older_names)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'status_enqueuing', ?, ?)`,
    [
      job.job_id,
      job.api_name,
      job.api_id,
      job.submission_json,
      job.config_json,
      job.workers,
      job.timeout_s,
      job.max_receive_count,
      job.dead_letter_arn,
      job.dead_letter_queue,
      job.created_time,
      job.has_older_names,
    ],
  );
}

export function findJob(db: Statements, apiName: string, jobId: string): Promise<JobRow | undefined> {
  return first<JobRow>(db, `SELECT ${COLUMNS} FROM jobs WHERE job_id = ? AND api_name = ?`, [jobId, apiName]);
}

export function jobById(db: Statements, jobId: string): Promise<JobRow | undefined> {
  return first<JobRow>(db, `SELECT ${COLUMNS} FROM jobs WHERE job_id = ?`, [jobId]);
}

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
    `SELECT ${COLUMNS} FROM jobs WHERE api_name = ? AND job_id < ? ${filter} ORDER BY job_id DESC LIMIT ?`,
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
  letters: { queue: string; messages: number }[];
}

/** Rows are long: the counts come after the submission and the configuration. */
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
  const letters = await db.all<JobTotals["letters"][number]>(
    "SELECT queue, count(*) AS messages FROM letters GROUP BY queue",
  );
  return {
    byApi: [...sums.values()].sort((a, b) => (a.api + a.status < b.api + b.status ? -1 : 1)),
    letters,
  };
}

/** Which of these ids are jobs. */
export async function existingJobs(db: Statements, ids: readonly string[]): Promise<Set<string>> {
  const places = ids.map(() => "?").join(", ");
  const rows = await db.all<{ job_id: string }>(`SELECT job_id FROM jobs WHERE job_id IN (${places})`, ids);
  return new Set(rows.map(({ job_id }) => job_id));
}

/** The columns needed to resume a job. Only these, because there may be many jobs. */
export type UnfinishedJob = Pick<JobRow, "job_id" | "api_name" | "closing" | "paused">;

export function unfinishedJobs(db: Statements): Promise<UnfinishedJob[]> {
  return db.all("SELECT job_id, api_name, closing, paused FROM jobs WHERE end_time IS NULL ORDER BY job_id");
}

/** The submitter's `config`, as text; `{}` if there was none. */
export async function configText(db: Statements, jobId: string): Promise<string> {
  const sql = "SELECT config_json FROM jobs WHERE job_id = ?";
  return (await first<{ config_json: string }>(db, sql, [jobId]))?.config_json ?? "{}";
}

/** Takes a job over; every later write of this run carries `epoch`. */
export async function claimJob(db: Database, jobId: string, epoch: number): Promise<JobRow | undefined> {
  await db.run("UPDATE jobs SET epoch = ? WHERE job_id = ? AND epoch < ? AND end_time IS NULL", [
    epoch,
    jobId,
    epoch,
  ]);
  return first<JobRow>(db, `SELECT ${COLUMNS} FROM jobs WHERE job_id = ? AND epoch = ?`, [jobId, epoch]);
}

export async function setStartTime(
  db: Statements,
  jobId: string,
  epoch: number,
  startTime: string,
): Promise<void> {
  await db.run("UPDATE jobs SET start_time = COALESCE(start_time, ?) WHERE job_id = ? AND epoch = ?", [
    startTime,
    jobId,
    epoch,
  ]);
}

/** The end of enqueuing: predictions may begin. False if the job was closed before. */
export async function setRunning(
  db: Statements,
  jobId: string,
  epoch: number,
  totalBatches: number,
): Promise<boolean> {
  const changed = await db.run(
    "UPDATE jobs SET status = 'status_running', total_batch_count = ? WHERE job_id = ? AND epoch = ? AND status = 'status_enqueuing' AND closing IS NULL",
    [totalBatches, jobId, epoch],
  );
  return changed === 1;
}

export async function saveEnqueued(
  tx: Statements,
  jobId: string,
  epoch: number,
  batches: number,
  cursor: unknown,
): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE jobs SET enqueued_batches = ?, enqueue_cursor_json = ? WHERE job_id = ? AND epoch = ?",
    [batches, JSON.stringify(cursor), jobId, epoch],
  );
  return changed === 1;
}

export interface SettledDelta {
  succeeded: number;
  failedAttempts: number;
  failedBatches: number;
  successUs: number;
}

export async function addSettled(
  tx: Statements,
  jobId: string,
  epoch: number,
  delta: SettledDelta,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE jobs SET succeeded = succeeded + ?, failed_attempts = failed_attempts + ?, failed_batches = failed_batches + ?,
       success_us = success_us + ? WHERE job_id = ? AND epoch = ?`,
    [delta.succeeded, delta.failedAttempts, delta.failedBatches, delta.successUs, jobId, epoch],
  );
  return changed === 1;
}

/**
 * Stop, timeout and finish race for this one record; the first wins. Not bound to an epoch: a stop may come while
 * nobody owns the job.
 */
export async function setClosing(db: Statements, jobId: string, ending: Ending): Promise<boolean> {
  const from = movesInto(ending.status);
  const changed = await db.run(
    `UPDATE jobs SET closing = ?, reason_json = ? WHERE job_id = ? AND closing IS NULL AND status IN (${from.map(() => "?").join(", ")})`,
    [ending.status, ending.reason === undefined ? null : JSON.stringify(ending.reason), jobId, ...from],
  );
  return changed === 1;
}

/** Makes the closing record's status the job's. */
export async function setTerminal(db: Statements, jobId: string, endTime: string): Promise<void> {
  await db.run(
    "UPDATE jobs SET status = closing, end_time = ? WHERE job_id = ? AND closing IS NOT NULL AND end_time IS NULL",
    [endTime, jobId],
  );
}

/** So many of its failed batches are to run again. */
export async function countFewerFailed(tx: Statements, jobId: string, batches: number): Promise<void> {
  await tx.run("UPDATE jobs SET failed_batches = failed_batches - ? WHERE job_id = ?", [batches, jobId]);
}

/** Begins the next round of an ended job. */
export async function beginRound(
  tx: Statements,
  jobId: string,
  round: { status: "status_enqueuing" | "status_running"; startedTime: string },
): Promise<void> {
  const from = movesInto(round.status, "new round");
  await tx.run(
    `UPDATE jobs SET status = ?, closing = NULL, reason_json = NULL, end_time = NULL, round = round + 1,
       paused = NULL, paused_time = NULL, round_started_time = ?
     WHERE job_id = ? AND status IN (${from.map(() => "?").join(", ")})`,
    [round.status, round.startedTime, jobId, ...from],
  );
}

export function reasonOf(row: JobRow): JobReason | undefined {
  return row.reason_json === null ? undefined : (JSON.parse(row.reason_json) as JobReason);
}
