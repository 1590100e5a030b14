/**
 * Pauses and continues jobs. No batch of a paused job starts, across restarts, until the job is continued or stopped.
 */
import type { Database, Statements } from "../../database/database.ts";

/** Why a job is paused: the value in its row, and a sentence for users. */
const PAUSED_BECAUSE = {
  copy: "paused: this server runs on a copy of a data directory, and the job would write to the same outputs and queues as the original's; `quern job unpause --all` continues it, `quern job stop` ends it",
};

/** For `job_status.waiting`. */
export function pausedBecause(cause: string): string {
  return PAUSED_BECAUSE[cause as keyof typeof PAUSED_BECAUSE] ?? "paused";
}

/**
 * Pauses all jobs that have not ended, and ended jobs with messages that wait for SQS. Resolves to the number of jobs
 * that have not ended.
 */
export async function pauseAll(
  tx: Statements,
  cause: keyof typeof PAUSED_BECAUSE,
  time: string,
): Promise<number> {
  await tx.run(
    `UPDATE jobs SET paused = ?, paused_time = ? WHERE paused IS NULL AND end_time IS NOT NULL
     AND job_id IN (SELECT job_id FROM letters WHERE queue >= 'arn:' AND queue < 'arn;')`,
    [cause, time],
  );
  return tx.run(
    "UPDATE jobs SET paused = ?, paused_time = ? WHERE paused IS NULL AND end_time IS NULL AND closing IS NULL",
    [cause, time],
  );
}

interface PausedRow {
  job_id: string;
  created_time: string;
  round_started_time: string | null;
  paused_time: string;
  end_time: string | null;
}

/**
 * Continues all paused jobs. Resolves to the ids of those that have not ended. The paused time does not count towards
 * their timeout.
 */
export function unpauseAll(db: Database, nowMs: number): Promise<string[]> {
  return db.transaction(async (tx) => {
    const rows = await tx.all<PausedRow>(
      "SELECT job_id, created_time, round_started_time, paused_time, end_time FROM jobs WHERE paused IS NOT NULL",
    );
    for (const row of rows)
      await tx.run(
        "UPDATE jobs SET paused = NULL, paused_time = NULL, round_started_time = ? WHERE job_id = ?",
        [row.end_time === null ? laterStart(row, nowMs) : row.round_started_time, row.job_id],
      );
    return rows.filter(({ end_time }) => end_time === null).map(({ job_id }) => job_id);
  });
}

function laterStart({ created_time, round_started_time, paused_time }: PausedRow, nowMs: number): string {
  const pausedMs = Math.max(0, nowMs - Date.parse(paused_time));
  return new Date(Date.parse(round_started_time ?? created_time) + pausedMs).toISOString();
}
