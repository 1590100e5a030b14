/**
 * Ends a job, once: the closing record, for which all causes race, then the terminal status. Both are in the commit
 * order (docs/decisions/0004-commit-order.md). A restart between them continues with the second.
 */
import { setTimeout as pause } from "node:timers/promises";
import { contain, reportFault } from "../../base/boundary.ts";
import { timestamp } from "../../base/clock.ts";
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { processLog } from "../../base/log.ts";
import type { JobReason } from "../../contracts/jobs.ts";
import { type Database, unavailabilityOf } from "../../database/database.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { type Patience, PatientStore } from "../../object-store/patient-store.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { batchId } from "../letters/letters.ts";
import { findOutput } from "../output/job-outputs.ts";
import { publishOutput } from "../output/publish.ts";
import { countDeadly, firstDeadly } from "../records/failed-batches.ts";
import { replaceClosing, setClosing } from "../records/job-moves.ts";
import { outputFailed, unexpected } from "../records/job-reasons.ts";
import { type JobRow, jobById } from "../records/job-rows.ts";
import { decideEnding, type EndCause, type SettledCounts } from "../records/job-status.ts";
import { FormerOwner } from "../records/owned-job.ts";
import { endCounted } from "./job-durations.ts";

/** Pauses between tries to end a job whose end fails. */
const END_AGAIN_FIRST_MS = 1_000;
const END_AGAIN_MAX_MS = 60_000;

export interface EndDeps {
  db: Database;
  /** Where the manifest of an output is written. */
  store: ObjectStore;
  reach: ReachKillPoint;
  /** Aborted when the server stops. */
  stopping?: AbortSignal | undefined;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
  /** Of the run that ends: its status says for which store it waits. */
  storeWait?: Pick<Patience, "onWait" | "onResume">;
}

/** Ends the job, whichever cause was first. True if it was `cause`. */
export async function finishJob(deps: EndDeps, jobId: string, cause: EndCause): Promise<boolean> {
  const won = await closeJob(deps, jobId, cause);
  await makeTerminal(deps, jobId);
  return won;
}

/** Ends the job with the error of an end that failed. */
export function endAtAnyRate(deps: EndDeps, job: EndedRound, error: Error): void {
  processLog().error({ event: "job_not_ended", job_id: job.job_id, err: error }, "a job could not be ended");
  endForError(deps, job, error);
}

/** Only this round of the job ends. */
export type EndedRound = Pick<JobRow, "job_id" | "round">;

/** Ends the job with an error, and tries until it has ended: otherwise it would stay running, and nobody would look. */
export function endForError(deps: EndDeps, job: EndedRound, error: Error): void {
  contain("a job's end", async () => {
    const cause: EndCause = { kind: "unexpected", reason: unexpected(error) };
    for (let pauseMs = END_AGAIN_FIRST_MS; ; pauseMs = Math.min(END_AGAIN_MAX_MS, 2 * pauseMs)) {
      const hasEnded = await endedRound(deps, job, cause).catch((again: Error) => mayTryAgain(deps, again));
      if (hasEnded) return;
      await pause(pauseMs, undefined, { signal: deps.stopping, ref: false }).catch(() => {});
    }
  });
}

async function endedRound(deps: EndDeps, { job_id, round }: EndedRound, cause: EndCause): Promise<true> {
  const job = await jobById(deps.db, job_id);
  // Somebody may have ended it meanwhile, and resumed it.
  if (job?.round === round && job.end_time === null) await finishJob(deps, job_id, cause);
  return true;
}

/** Throws `again` if the server stops or loses its database: the next controller ends the job. */
function mayTryAgain({ stopping }: EndDeps, again: Error): false {
  if (stopping?.aborted === true || again instanceof FormerOwner || unavailabilityOf(again)) throw again;
  reportFault(again, "the end of a job, which is tried again");
  return false;
}

/**
 * The closing record alone, for whoever does not make the end: the one who does may wait for the store of the output.
 * True if `cause` decided the end; false if another cause was first.
 */
export async function closeJob(deps: EndDeps, jobId: string, cause: EndCause): Promise<boolean> {
  const { db, reach } = deps;
  const job = await jobById(db, jobId);
  if (job === undefined) return false;
  const decided = decideEnding(cause, {
    total: job.total_batch_count ?? 0,
    succeeded: job.succeeded,
    failedBatches: job.failed_batches,
    ...(cause.kind === "settled" && job.failed_batches > 0 ? await deaths(db, jobId) : NO_DEATHS),
  });
  const ending = { ...decided, reason: decided.reason && named(decided.reason, job) };
  reach("closing-before-commit");
  const won = await setClosing(db, jobId, ending);
  reach("closing-after-commit");
  const why = ending.reason === undefined ? "" : ` (${ending.reason.message})`;
  if (won) deps.jobLog(jobId, `the job ended: ${ending.status}${why}`);
  return won;
}

type Deaths = Omit<SettledCounts, "total" | "succeeded" | "failedBatches">;
/** Only `settled` depends on them. After an end that failed, as little as possible is read. */
const NO_DEATHS: Deaths = { failedByDeath: 0, failedByOom: 0 };

async function deaths(db: Database, jobId: string): Promise<Deaths> {
  return { ...(await countDeadly(db, jobId)), ...(await firstDeath(db, jobId)) };
}

/** Describes the first batch that finally failed because its worker died; one out of memory, if there is any. */
async function firstDeath(
  db: Database,
  jobId: string,
): Promise<Pick<SettledCounts, "firstDeath" | "evidence">> {
  const row = await firstDeadly(db, jobId);
  if (row === undefined) return {};
  const { batch_index, error_json } = row;
  const { evidence, message } = JSON.parse(error_json) as WorkerFault;
  return {
    firstDeath: `batch ${batch_index}: ${message}`,
    evidence: { batch_id: batchId(jobId, batch_index), batch_index, ...evidence },
  };
}

/** Puts the names of the API and the job into a hint's command, so that it can be copied. */
function named(reason: JobReason, { api_name, job_id }: JobRow): JobReason {
  return reason.hint === undefined
    ? reason
    : { ...reason, hint: reason.hint.replaceAll("API JOB", `${api_name} ${job_id}`) };
}

/** The last step, also for a job whose server was killed right before it. Its workers may still run. */
export async function makeTerminal(deps: EndDeps, jobId: string): Promise<void> {
  const { db, reach } = deps;
  await publishClosing(deps, jobId);
  reach("terminal-before-commit");
  const ended = await endCounted(db, jobId, timestamp());
  reach("terminal-after-commit");
  if (ended !== undefined) logEnd(ended);
}

function logEnd({ job_id, api_name: api, status, ...job }: JobRow): void {
  const { succeeded, failed_batches, created_time, end_time } = job;
  const seconds = Math.round((Date.parse(end_time!) - Date.parse(created_time)) / 1_000);
  const counts = { succeeded, failed_batches, seconds };
  processLog().info({ event: "job_ended", api, job_id, status, ...counts }, `a job of ${api} ended`);
}

/** Publishes the output of a job that is about to end. If that fails, the job ends for this reason. */
async function publishClosing(deps: EndDeps, jobId: string): Promise<void> {
  const output = await findOutput(deps.db, jobId);
  if (output === undefined) return;
  const job = await jobById(deps.db, jobId);
  if (job === undefined || job.closing === null || job.end_time !== null) return;
  const onWait = (error: Error, pauseMs: number) =>
    deps.jobLog(jobId, `${error.message}; trying again in ${pauseMs} ms`);
  const { storeWait = { onWait } } = deps;
  const patient = (signal: AbortSignal) => new PatientStore(deps.store, { ...storeWait, signal });
  try {
    await publishOutput({ ...deps, patient }, { job, output, status: job.closing });
  } catch (error) {
    // The server shuts down, and the output may be complete. The next controller looks.
    if (unavailabilityOf(error) !== undefined) throw error;
    const reason = named(outputFailed(error as Error), job);
    deps.jobLog(jobId, reason.message);
    await replaceClosing(deps.db, jobId, { status: "status_unexpected_error", reason });
  }
}
