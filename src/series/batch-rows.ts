/**
 * The rows of batches. Jobs count their batches durably in their own rows; `series_counted` says how much of that is in
 * the series. Both change in one transaction, so a kill at any time loses no batch and counts none twice.
 */
import { SERIES_COUNTED_AT_ONCE } from "../contracts/limits/database.ts";
import { type Database, first, type Statements } from "../database/database.ts";
import { minuteOf } from "./steps.ts";

/** What a job has counted since its counts last went into the series. */
interface Growth {
  job_id: string;
  api_name: string;
  succeeded: number;
  failed: number;
}

const HAS_GROWN = "(j.succeeded <> COALESCE(c.succeeded, 0) OR j.failed_attempts <> COALESCE(c.failed, 0))";
const GROWTH = `SELECT j.job_id, j.api_name, j.succeeded - COALESCE(c.succeeded, 0) AS succeeded,
    j.failed_attempts - COALESCE(c.failed, 0) AS failed
  FROM jobs j LEFT JOIN series_counted c ON c.job_id = j.job_id WHERE ${HAS_GROWN}`;
const ADD = `INSERT INTO series_batches (api_name, job_id, at_s, step_s, succeeded, failed) VALUES (?, ?, ?, 60, ?, ?)
  ON CONFLICT (api_name, job_id, at_s, step_s) DO UPDATE SET succeeded = series_batches.succeeded + excluded.succeeded,
    failed = series_batches.failed + excluded.failed`;
const COUNT = `INSERT INTO series_counted (job_id, succeeded, failed) VALUES (?, ?, ?)
  ON CONFLICT (job_id) DO UPDATE SET succeeded = series_counted.succeeded + excluded.succeeded,
    failed = series_counted.failed + excluded.failed`;

/** Adds what the jobs in progress have counted since the last call to the minute of `timeS`, some jobs in each commit. */
export async function countBatches(db: Database, timeS: number): Promise<void> {
  const some = `${GROWTH} AND j.end_time IS NULL LIMIT ${SERIES_COUNTED_AT_ONCE}`;
  for (let left = await db.all<Growth>(some); left.length > 0; left = await db.all<Growth>(some))
    await db.transaction(async (tx) => addAll(tx, await tx.all<Growth>(some), timeS));
}

/** In the transaction that ends a job: its counts are final. */
export async function countLastBatches(tx: Statements, jobId: string, timeS: number): Promise<void> {
  await addAll(tx, await tx.all<Growth>(`${GROWTH} AND j.job_id = ?`, [jobId]), timeS);
  await tx.run("DELETE FROM series_counted WHERE job_id = ?", [jobId]);
}

/** In the transaction that begins a new round of a job, whose batches so far have been counted. */
export async function continueCounting(tx: Statements, jobId: string): Promise<void> {
  await tx.run("DELETE FROM series_counted WHERE job_id = ?", [jobId]);
  await tx.run(
    `INSERT INTO series_counted (job_id, succeeded, failed)
     SELECT job_id, succeeded, failed_attempts FROM jobs WHERE job_id = ?`,
    [jobId],
  );
}

/** What is in no row yet, of one job, an API's jobs, or all. */
export function uncounted(
  db: Statements,
  { api, job }: { api?: string | undefined; job?: string | undefined },
): Promise<Growth[]> {
  const [condition, params] =
    job !== undefined
      ? ["AND j.job_id = ?", [job]]
      : api !== undefined
        ? ["AND j.api_name = ?", [api]]
        : ["", []];
  return db.all(`${GROWTH} AND j.end_time IS NULL ${condition}`, params);
}

/** To the rows of the jobs, of their APIs unless these are deleted, and of all. */
async function addAll(tx: Statements, grown: readonly Growth[], timeS: number): Promise<void> {
  if (grown.length === 0) return;
  const sums = new Map<string, { succeeded: number; failed: number }>();
  const minuteS = minuteOf(timeS);
  for (const { job_id, api_name, succeeded, failed } of grown) {
    await tx.run(ADD, [api_name, job_id, minuteS, succeeded, failed]);
    await tx.run(COUNT, [job_id, succeeded, failed]);
    for (const api of [api_name, ""]) {
      const sum = sums.get(api) ?? { succeeded: 0, failed: 0 };
      sums.set(api, { succeeded: sum.succeeded + succeeded, failed: sum.failed + failed });
    }
  }
  for (const [api, { succeeded, failed }] of sums) {
    const isDeployed =
      api === "" || (await first(tx, "SELECT name FROM apis WHERE name = ?", [api])) !== undefined;
    if (isDeployed) await tx.run(ADD, [api, "", minuteS, succeeded, failed]);
  }
}
