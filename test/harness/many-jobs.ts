/** Rows of many jobs of several APIs, in all statuses, without their input: for lists and counts. */
import { firstUlidOf } from "../../src/base/ids.ts";
import { JOB_STATUSES, type JobStatus } from "../../src/contracts/jobs.ts";
import type { Database } from "../../src/database/database.ts";

export interface ManyJob {
  job_id: string;
  api_name: string;
  status: JobStatus;
  createdMs: number;
}

const INSERTED_AT_ONCE = 500;
const FIRST_MS = Date.UTC(2026, 0, 1);

/** One each second. `running`: how many of the newest have not ended. */
export function manyJobs(count: number, apis: readonly string[], running: number): ManyJob[] {
  const ended = JOB_STATUSES.filter((status) => !/unknown|enqueuing|running/.test(status));
  return Array.from({ length: count }, (_, i) => {
    const createdMs = FIRST_MS + i * 1000;
    return {
      job_id: firstUlidOf(createdMs).slice(0, 10) + String(i * 7919).padStart(16, "0"),
      api_name: apis[(i * 31) % apis.length]!,
      status: i >= count - running ? "status_running" : ended[(i * 17) % ended.length]!,
      createdMs,
    };
  });
}

export async function insertManyJobs(db: Database, jobs: readonly ManyJob[]): Promise<void> {
  for (let at = 0; at < jobs.length; at += INSERTED_AT_ONCE) {
    const some = jobs.slice(at, at + INSERTED_AT_ONCE);
    await db.run(
      `INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time, end_time)
       VALUES ${some.map(() => "(?, ?, 'v1', 1, ?, ?, ?)").join(", ")}`,
      some.flatMap(({ job_id, api_name, status, createdMs }) => {
        const time = new Date(createdMs).toISOString();
        return [job_id, api_name, status, time, status === "status_running" ? null : time];
      }),
    );
  }
}
