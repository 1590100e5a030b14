/**
 * Pauses and continues jobs. No batch of a paused job starts, across restarts, until the job is continued or stopped.
 */
import type { SqlValue, Statements } from "../../database/database.ts";
import type { JobRow } from "./job-rows.ts";

/** Why a job is paused: the value in its row, and a sentence for users. */
const PAUSED_BECAUSE = {
  copy: "paused: this server runs on a copy of a data directory, and the job would write to the same outputs and queues as the original's; `quern job unpause --all` continues it, `quern job stop` ends it",
  user: "paused: no new batch begins; `quern job unpause API JOB` continues it",
  api: "paused with its API: no new batch begins; `quern unpause API` continues it",
};
export type PauseCause = keyof typeof PAUSED_BECAUSE;

/** For `job_status.waiting`. */
export function pausedBecause({ paused, api_name, job_id }: JobRow): string {
  const because = PAUSED_BECAUSE[paused as PauseCause] ?? "paused";
  return because.replace("API JOB", `${api_name} ${job_id}`).replace("unpause API`", `unpause ${api_name}\``);
}

/**
 * Pauses all jobs that have not ended, and ended jobs with messages that wait for SQS, because this is a copy. Resolves
 * to the number of jobs that have not ended.
 */
export async function pauseCopied(tx: Statements, time: string): Promise<number> {
  await tx.run(
    `UPDATE jobs SET paused = 'copy', paused_time = ? WHERE paused IS NULL AND end_time IS NOT NULL
     AND job_id IN (SELECT job_id FROM letters WHERE queue >= 'arn:' AND queue < 'arn;')`,
    [time],
  );
  return tx.run(
    "UPDATE jobs SET paused = 'copy', paused_time = ? WHERE paused IS NULL AND end_time IS NULL AND closing IS NULL",
    [time],
  );
}

/** True if the job is paused now; false if it ends or has ended. One that is paused with its API stays so on its own. */
export async function pauseJob(db: Statements, jobId: string, time: string): Promise<boolean> {
  const changed = await db.run(
    `UPDATE jobs SET paused = CASE paused WHEN 'copy' THEN 'copy' ELSE 'user' END,
       paused_time = COALESCE(paused_time, ?) WHERE job_id = ? AND end_time IS NULL AND closing IS NULL`,
    [time, jobId],
  );
  return changed === 1;
}

/** How many jobs of an API are paused and have not ended, and how many of all APIs. */
export async function countPaused(
  db: Statements,
  apiName: string,
): Promise<{ ofApi: number; ofAll: number }> {
  const rows = await db.all<{ api_name: string; count: number }>(
    `SELECT api_name, CAST(count(*) AS INTEGER) AS count FROM jobs
     WHERE paused IS NOT NULL AND end_time IS NULL GROUP BY api_name`,
  );
  const ofAll = rows.reduce((sum, { count }) => sum + count, 0);
  return { ofApi: rows.find((row) => row.api_name === apiName)?.count ?? 0, ofAll };
}

/** Pauses the jobs of an API that have not ended. Resolves to the ids of those that were not paused. */
export async function pauseJobsOf(tx: Statements, apiName: string, time: string): Promise<string[]> {
  const where = "api_name = ? AND paused IS NULL AND end_time IS NULL AND closing IS NULL";
  const rows = await tx.all<{ job_id: string }>(`SELECT job_id FROM jobs WHERE ${where}`, [apiName]);
  await tx.run(`UPDATE jobs SET paused = 'api', paused_time = ? WHERE ${where}`, [time, apiName]);
  return rows.map(({ job_id }) => job_id);
}

interface PausedRow {
  job_id: string;
  created_time: string;
  round_started_time: string | null;
  paused_time: string;
  end_time: string | null;
}

/** Which paused jobs are continued. */
export type Paused = { causes: readonly PauseCause[] } | { jobId: string } | { pausedWithApi: string };

function condition(which: Paused): [string, SqlValue[]] {
  if ("jobId" in which) return ["job_id = ?", [which.jobId]];
  if ("pausedWithApi" in which) return ["api_name = ? AND paused = 'api'", [which.pausedWithApi]];
  return [`paused IN (${which.causes.map(() => "?").join(", ")})`, [...which.causes]];
}

/**
 * Continues paused jobs. Resolves to the ids of those that have not ended. The paused time does not count towards their
 * timeout.
 */
export async function unpause(tx: Statements, which: Paused, nowMs: number): Promise<string[]> {
  const [where, values] = condition(which);
  const rows = await tx.all<PausedRow>(
    `SELECT job_id, created_time, round_started_time, paused_time, end_time FROM jobs WHERE paused IS NOT NULL AND ${where}`,
    values,
  );
  const now = new Date(nowMs).toISOString();
  for (const row of rows)
    await tx.run(
      "UPDATE jobs SET paused = NULL, paused_time = NULL, round_started_time = ?, queued_time = ? WHERE job_id = ?",
      [row.end_time === null ? laterStart(row, nowMs) : row.round_started_time, now, row.job_id],
    );
  return rows.filter(({ end_time }) => end_time === null).map(({ job_id }) => job_id);
}

function laterStart({ created_time, round_started_time, paused_time }: PausedRow, nowMs: number): string {
  const pausedMs = Math.max(0, nowMs - Date.parse(paused_time));
  return new Date(Date.parse(round_started_time ?? created_time) + pausedMs).toISOString();
}
