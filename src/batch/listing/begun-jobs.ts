/** When the jobs of all APIs ran that started in a while, for explanations of that time. */
import { firstUlidOf } from "../../base/ids.ts";
import { BEGUN_JOBS_READ_MAX } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";

/** A job may have waited for so long between its submission and its start. Others are not found. */
const WAITED_MAX_MS = 24 * 3_600_000;

/** A round of a job: between two rounds nothing of it runs. */
export interface BegunJob {
  job_id: string;
  api_name: string;
  workers: number;
  round: number;
  start_time: string;
  end_time: string | null;
}

interface Round {
  job_id: string;
  round: number;
  begun_time: string;
  ended_time: string | null;
}

/** In the order of their starts. Of very many jobs, those that were submitted last are found. */
export async function begunJobs(db: Database, fromMs: number, toMs: number): Promise<BegunJob[]> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  const jobs = await db.all<BegunJob>(
    `SELECT job_id, api_name, workers, round, start_time, end_time FROM
       (SELECT job_id, api_name, workers, round, start_time, end_time FROM jobs WHERE job_id >= ? AND job_id < ?
        ORDER BY job_id DESC LIMIT ${BEGUN_JOBS_READ_MAX}) recent
     WHERE start_time IS NOT NULL AND (round > 1 OR (start_time >= ? AND start_time < ?))`,
    [firstUlidOf(fromMs - WAITED_MAX_MS), firstUlidOf(toMs), from, to],
  );
  const again = jobs.filter(({ round }) => round > 1).map(({ job_id }) => job_id);
  const rounds = await roundsOf(db, again, [from, to]);
  return jobs
    .flatMap((job) => spansOf(job, rounds.get(job.job_id) ?? []))
    .filter(({ start_time }) => start_time >= from && start_time < to)
    .sort((a, b) => (`${a.start_time}${a.job_id}` < `${b.start_time}${b.job_id}` ? -1 : 1));
}

/** The first rounds of these jobs, and those that began in a while. */
async function roundsOf(
  db: Database,
  ids: readonly string[],
  span: readonly [from: string, to: string],
): Promise<Map<string, Round[]>> {
  const rounds = new Map<string, Round[]>();
  if (ids.length === 0) return rounds;
  const rows = await db.all<Round>(
    `SELECT job_id, round, begun_time, ended_time FROM job_rounds
     WHERE job_id IN (${ids.map(() => "?").join()}) AND (round = 1 OR (begun_time >= ? AND begun_time < ?))`,
    [...ids, ...span],
  );
  for (const row of rows) rounds.set(row.job_id, [...(rounds.get(row.job_id) ?? []), row]);
  return rounds;
}

/**
 * The outcome of the last round is in the job's own row. Rounds that were never recorded are left out, and those that
 * ended before a worker came.
 */
function spansOf(job: BegunJob, rounds: readonly Round[]): BegunJob[] {
  if (job.round === 1) return [job];
  const spans = rounds.map(({ round, begun_time, ended_time }) => ({
    ...job,
    round,
    // The submission waited for its first worker.
    start_time: round === 1 ? job.start_time : begun_time,
    end_time: round === job.round ? job.end_time : ended_time,
  }));
  return spans.filter(({ start_time, end_time }) => end_time === null || start_time <= end_time);
}
