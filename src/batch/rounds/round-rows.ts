/**
 * The rounds of jobs: how each began, by whom, and how it ended. A job that is never redriven or resumed has no row, unless
 * somebody is known who submitted it: what its only round did is in the job's own row. The outcome of a round is written
 * when the next one is prepared.
 */
import type { JobStatus } from "../../contracts/jobs.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import { ROUND_REASON_LENGTH_MAX, ROUNDS_KEPT_MAX } from "../../contracts/limits/jobs.ts";
import type { Statements } from "../../database/database.ts";
import { type JobRow, reasonOf } from "../records/job-rows.ts";

export type RoundStart = "submitted" | "redriven" | "resumed";

export interface RoundRow {
  round: number;
  /** Null: it began before this was recorded. */
  how: RoundStart | null;
  by_id: string | null;
  by_name: string | null;
  /** What a redrive selected; null is all. */
  selection: string | null;
  begun_time: string;
  /** The job's counts when it began; null if they are not known. */
  succeeded_before: number | null;
  failed_before: number | null;
  /** How it ended; all null until the next round is prepared. */
  ended_time: string | null;
  status: JobStatus | null;
  reason: string | null;
  succeeded_after: number | null;
  failed_after: number | null;
}

const COLUMNS = `round, how, by_id, by_name, selection, begun_time, succeeded_before, failed_before, ended_time, status,
  reason, succeeded_after, failed_after`;
const BEGUN = `INSERT INTO job_rounds (job_id, round, how, by_id, by_name, selection, begun_time, succeeded_before,
  failed_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
/** What is written first stays: a redrive that was interrupted has put some of the failed batches back. */
const ENDED = `INSERT INTO job_rounds (job_id, round, how, begun_time, succeeded_before, failed_before, ended_time,
  status, reason, succeeded_after, failed_after) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (job_id, round) DO UPDATE SET ended_time = excluded.ended_time, status = excluded.status,
    reason = excluded.reason, succeeded_after = excluded.succeeded_after, failed_after = excluded.failed_after
  WHERE job_rounds.status IS NULL`;

/** In the transaction that records the job. */
export async function noteSubmitter(
  tx: Statements,
  jobId: string,
  { id, name }: DoneBy,
  time: string,
): Promise<void> {
  if (id !== null) await tx.run(BEGUN, [jobId, 1, "submitted", id, name, null, time, 0, 0]);
}

/** The last round of an ended job, if it has none: before this was recorded, or nobody was known. */
export function unrecordedRound(job: JobRow, round = job.round): RoundRow {
  const isFirst = round === 1;
  return {
    round,
    ...{ how: isFirst ? "submitted" : null, by_id: null, by_name: null, selection: null },
    begun_time: isFirst ? job.created_time : (job.round_started_time ?? job.created_time),
    ...{ succeeded_before: isFirst ? 0 : null, failed_before: isFirst ? 0 : null },
    ...{ ended_time: null, status: null, reason: null, succeeded_after: null, failed_after: null },
  };
}

/** How the last round of a job ended, before anything of it is put back. */
export async function noteOutcome(db: Statements, job: JobRow): Promise<void> {
  const { how, begun_time, succeeded_before, failed_before } = unrecordedRound(job);
  const reason = reasonOf(job)?.message.slice(0, ROUND_REASON_LENGTH_MAX) ?? null;
  await db.run(ENDED, [
    ...[job.job_id, job.round, how, begun_time, succeeded_before, failed_before],
    ...[job.end_time, job.status, reason, job.succeeded, job.failed_batches],
  ]);
}

export interface RoundBegun {
  how: RoundStart;
  by: DoneBy;
  selection: string | null;
}

/** `job`: its row right before the round begins, with what was put back. Forgets the oldest, but for the first. */
export async function noteBegun(
  tx: Statements,
  { job_id, round, succeeded, failed_batches }: JobRow,
  { how, by, selection }: RoundBegun,
  time: string,
): Promise<void> {
  const next = round + 1;
  await tx.run(BEGUN, [...[job_id, next, how, by.id, by.name, selection, time, succeeded, failed_batches]]);
  await tx.run("DELETE FROM job_rounds WHERE job_id = ? AND round > 1 AND round <= ?", [
    job_id,
    next - ROUNDS_KEPT_MAX,
  ]);
}

export function roundsOf(db: Statements, jobId: string): Promise<RoundRow[]> {
  return db.all(`SELECT ${COLUMNS} FROM job_rounds WHERE job_id = ? ORDER BY round`, [jobId]);
}
