/**
 * How long jobs took, for the metrics: from the submission, or the start of the round, to the end. Each end is counted in
 * its own commit, so that nobody reads all jobs to know it, and no count is lost with a record.
 */
import { wallMs } from "../../base/clock.ts";
import type { Database, Statements } from "../../database/database.ts";
import { countLastBatches } from "../../series/batch-rows.ts";
import { setTerminal } from "../records/job-moves.ts";
import { type JobRow, jobById } from "../records/job-rows.ts";
import { countEnded } from "../records/job-totals.ts";

/** In seconds, from one short batch to a week. */
export const JOB_DURATION_BOUNDS_S = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 604_800];

/** The ends of an API's jobs with one status. `buckets` has one more than the bounds. */
export interface JobDurations {
  api: string;
  status: string;
  buckets: number[];
  sumSeconds: number;
}

type EndedJob = Pick<JobRow, "api_name" | "status" | "created_time" | "round_started_time" | "end_time">;

/** `setTerminal`, which also counts the job and how long it took, once. Resolves to the job if this ended it. */
export function endCounted(db: Database, jobId: string, endTime: string): Promise<JobRow | undefined> {
  return db.transaction(async (tx) => {
    const isEnded = await setTerminal(tx, jobId, endTime);
    if (!isEnded) return undefined;
    const job = (await jobById(tx, jobId))!;
    await countDuration(tx, job);
    await countEnded(tx, job, 1);
    await countLastBatches(tx, jobId, wallMs() / 1000);
    return job;
  });
}

async function countDuration(tx: Statements, job: EndedJob): Promise<void> {
  const { api_name, status, created_time, round_started_time, end_time } = job;
  const ms = Date.parse(end_time!) - Date.parse(round_started_time ?? created_time);
  // The clock may have been set back. A row with a broken time must not keep the job from ending.
  const tookMs = Math.max(0, ms) || 0;
  await tx.run(
    `INSERT INTO job_durations (api_name, status, over_s, jobs, total_ms) VALUES (?, ?, ?, 1, ?)
     ON CONFLICT (api_name, status, over_s) DO UPDATE SET jobs = job_durations.jobs + 1,
       total_ms = job_durations.total_ms + excluded.total_ms`,
    [api_name, status, JOB_DURATION_BOUNDS_S.findLast((bound) => tookMs > bound * 1_000) ?? 0, tookMs],
  );
}

/** A few rows for each API and status. */
export async function jobDurations(db: Statements): Promise<JobDurations[]> {
  const rows = await db.all<{ api: string; status: string; over_s: number; jobs: number; total_ms: number }>(
    "SELECT api_name AS api, status, over_s, jobs, total_ms FROM job_durations ORDER BY api_name, status",
  );
  const found: JobDurations[] = [];
  for (const { api, status, over_s, jobs, total_ms } of rows) {
    let last = found.at(-1);
    if (last?.api !== api || last.status !== status) {
      last = { api, status, buckets: [0, ...JOB_DURATION_BOUNDS_S.map(() => 0)], sumSeconds: 0 };
      found.push(last);
    }
    last.buckets[JOB_DURATION_BOUNDS_S.findLastIndex((bound) => over_s >= bound) + 1]! += jobs;
    last.sumSeconds += total_ms / 1_000;
  }
  return found;
}
