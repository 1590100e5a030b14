/**
 * Changes a job's status at its end and at the start of a new round, by `where status in (…)`: a change that comes too
 * late changes nothing. `JOB_MOVES` and `ROUND_MOVES` say which changes there are (job-status.ts).
 */
import { CLOSED_JOBS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import type { Statements } from "../../database/database.ts";
import { pausedWith } from "./job-rows.ts";
import { type Ending, movesInto, STOPPED } from "./job-status.ts";

/**
 * Stop, timeout and finish race for this one record; the first wins. Not bound to an epoch: a stop may come while
 * nobody owns the job.
 */
export async function setClosing(db: Statements, jobId: string, ending: Ending): Promise<boolean> {
  const from = movesInto(ending.status);
  const changed = await db.run(
    `UPDATE jobs SET closing = ?, reason_json = ? WHERE job_id = ? AND closing IS NULL AND status IN (${from.map(() => "?").join(", ")})`,
    [ending.status, ending.reason === undefined ? null : JSON.stringify(ending.reason), jobId, ...from],
  );
  return changed === 1;
}

/** The closing records of many jobs that are stopped, few in one statement. Those that have one keep it. */
export async function closeStopped(db: Statements, jobIds: readonly string[]): Promise<void> {
  const { status, reason } = STOPPED;
  const from = movesInto(status);
  const places = (values: readonly string[]) => values.map(() => "?").join(", ");
  for (let at = 0; at < jobIds.length; at += CLOSED_JOBS_AT_ONCE) {
    const some = jobIds.slice(at, at + CLOSED_JOBS_AT_ONCE);
    await db.run(
      `UPDATE jobs SET closing = ?, reason_json = ? WHERE job_id IN (${places(some)}) AND closing IS NULL AND status IN (${places(from)})`,
      [status, JSON.stringify(reason), ...some, ...from],
    );
  }
}

/**
 * Makes the closing record's status the job's. May be called again, as after a kill: the job changes once, and then the
 * result is true.
 */
export async function setTerminal(db: Statements, jobId: string, endTime: string): Promise<boolean> {
  const changed = await db.run(
    "UPDATE jobs SET status = closing, end_time = ? WHERE job_id = ? AND closing IS NOT NULL AND end_time IS NULL",
    [endTime, jobId],
  );
  return changed > 0;
}

/** Changes how a job ends, between the closing record and the terminal status: its output cannot be published. */
export async function replaceClosing(
  db: Statements,
  jobId: string,
  { status, reason }: Required<Ending>,
): Promise<void> {
  await db.run(
    "UPDATE jobs SET closing = ?, reason_json = ? WHERE job_id = ? AND closing IS NOT NULL AND end_time IS NULL",
    [status, JSON.stringify(reason), jobId],
  );
}

/** So many of its failed batches are to run again. */
export async function countFewerFailed(tx: Statements, jobId: string, batches: number): Promise<void> {
  await tx.run("UPDATE jobs SET failed_batches = failed_batches - ? WHERE job_id = ?", [batches, jobId]);
}

/** Begins the next round of an ended job. */
export async function beginRound(
  tx: Statements,
  jobId: string,
  round: {
    status: "status_enqueuing" | "status_running";
    startedTime: string;
    /** Since when its API is paused. */
    apiPausedTime: string | null;
  },
): Promise<void> {
  const from = movesInto(round.status, "new round");
  await tx.run(
    `UPDATE jobs SET status = ?, closing = NULL, reason_json = NULL, end_time = NULL, round = round + 1,
       paused = ?, paused_time = ?, enqueuing_deaths = 0, round_started_time = ?, queued_time = ?
     WHERE job_id = ? AND status IN (${from.map(() => "?").join(", ")})`,
    [
      round.status,
      ...pausedWith(round.apiPausedTime, round.startedTime),
      ...[round.startedTime, round.startedTime, jobId, ...from],
    ],
  );
}
