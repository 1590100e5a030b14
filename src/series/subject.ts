/** Whose series a request asks for, and since when something is known about it. */
import { quotedBeginning } from "../base/printable.ts";
import { ServiceError } from "../contracts/errors.ts";
import { type Database, first } from "../database/database.ts";
import { seriesBegan } from "./level-rows.ts";

export interface Subject {
  /** '': all APIs together. */
  api: string;
  /** '': not of a job alone. */
  jobId: string;
  knownFromS: number;
}

/** Throws `api_not_found` and `job_not_found`. */
export async function findSubject(
  db: Database,
  { api, job }: { api?: string | undefined; job?: string | undefined },
): Promise<Subject> {
  const beganS = (await seriesBegan(db)) ?? 0;
  if (job !== undefined) return jobSubject(db, { api, job }, beganS);
  if (api === undefined) return { api: "", jobId: "", knownFromS: beganS };
  if ((await first(db, "SELECT name FROM apis WHERE name = ?", [api])) === undefined)
    throw new ServiceError(
      "api_not_found",
      `${quotedBeginning(api)} is not deployed; \`quern get\` shows what is`,
    );
  return { api, jobId: "", knownFromS: Math.max(beganS, await apiBegan(db, api)) };
}

/** A rollback deploys the oldest version anew, so its time is no older than that. The series themselves are. */
async function apiBegan(db: Database, api: string): Promise<number> {
  const { time, at_s } = (await first<{ time: string | null; at_s: number | null }>(
    db,
    `SELECT (SELECT MIN(deployed_time) FROM api_versions WHERE name = ?) AS time,
       (SELECT MIN(at_s) FROM series_requests WHERE api_name = ?) AS at_s`,
    [api, api],
  ))!;
  return Math.min(secondsOf(time), at_s ?? Number.POSITIVE_INFINITY);
}

async function jobSubject(
  db: Database,
  { api, job }: { api: string | undefined; job: string },
  beganS: number,
): Promise<Subject> {
  const sql = "SELECT api_name, created_time FROM jobs WHERE job_id = ?";
  const row = await first<{ api_name: string; created_time: string }>(db, sql, [job]);
  if (row === undefined || (api !== undefined && api !== row.api_name))
    throw new ServiceError(
      "job_not_found",
      `there is no job ${quotedBeginning(job)}${api === undefined ? "" : ` of ${quotedBeginning(api)}`}`,
    );
  return { api: row.api_name, jobId: job, knownFromS: Math.max(beganS, secondsOf(row.created_time)) };
}

/** 0 for a time that cannot be read. */
function secondsOf(time: string | null): number {
  return Math.floor(Date.parse(time ?? "") / 1000) || 0;
}
