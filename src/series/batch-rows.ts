/**
 * The rows of batches. Jobs count their batches durably in their own rows; `series_counted` says how much of that is in
 * the series. Both change in one transaction, so a kill at any time loses no batch and counts none twice.
 */
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

/** Adds what the jobs in progress have counted since the last call to the minute of `timeS`. */
export async function countBatches(db: Database, timeS: number): Promise<void> {
  if ((await uncounted(db, {})).length === 0) return;
  await db.transaction(async (tx) => {
    for (const growth of await uncounted(tx, {})) await add(tx, growth, timeS);
  });
}

/** In the transaction that ends a job: its counts are final. */
export async function countLastBatches(tx: Statements, jobId: string, timeS: number): Promise<void> {
  const growth = await first<Growth>(tx, `${GROWTH} AND j.job_id = ?`, [jobId]);
  if (growth !== undefined) await add(tx, growth, timeS);
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

/** In the rows of the job, of its API unless that is deleted, and of all. */
async function add(tx: Statements, growth: Growth, timeS: number): Promise<void> {
  const { job_id, api_name, succeeded, failed } = growth;
  const counts = [minuteOf(timeS), succeeded, failed];
  const api = await first(tx, "SELECT name FROM apis WHERE name = ?", [api_name]);
  await tx.run(ADD, [api_name, job_id, ...counts]);
  if (api !== undefined) await tx.run(ADD, [api_name, "", ...counts]);
  await tx.run(ADD, ["", "", ...counts]);
  await tx.run(
    `INSERT INTO series_counted (job_id, succeeded, failed) VALUES (?, ?, ?)
     ON CONFLICT (job_id) DO UPDATE SET succeeded = series_counted.succeeded + excluded.succeeded,
       failed = series_counted.failed + excluded.failed`,
    [job_id, succeeded, failed],
  );
}
