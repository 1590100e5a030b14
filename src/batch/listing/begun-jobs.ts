/** The jobs of all APIs that started in a while, for explanations of that time. */
import { firstUlidOf } from "../../base/ids.ts";
import { BEGUN_JOBS_READ_MAX } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";

/** A job may have waited for so long between its submission and its start. Others are not found. */
const WAITED_MAX_MS = 24 * 3_600_000;

export interface BegunJob {
  job_id: string;
  api_name: string;
  workers: number;
  start_time: string;
  end_time: string | null;
}

/** In the order of their starts. Of very many jobs, those that were submitted last are found. */
export function begunJobs(db: Database, fromMs: number, toMs: number): Promise<BegunJob[]> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  return db.all<BegunJob>(
    `SELECT job_id, api_name, workers, start_time, end_time FROM
       (SELECT job_id, api_name, workers, start_time, end_time FROM jobs WHERE job_id >= ? AND job_id < ?
        ORDER BY job_id DESC LIMIT ${BEGUN_JOBS_READ_MAX}) recent
     WHERE start_time >= ? AND start_time < ? ORDER BY start_time, job_id`,
    [firstUlidOf(fromMs - WAITED_MAX_MS), firstUlidOf(toMs), from!, to!],
  );
}
