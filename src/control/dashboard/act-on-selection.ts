/** Does the same to each job or message of a selection, in turns that leave others the event loop and the database. */

import type { Jobs } from "../../batch/jobs.ts";
import type { LetterHead } from "../../batch/letters/letters.ts";
import type { Queues } from "../../batch/letters/queues.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { type ErrorCode, ServiceError } from "../../contracts/errors.ts";
import type { JobAction } from "../../contracts/http/overview-operations.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import { CHANGED_AT_ONCE, SKIPPED_SHOWN_MAX } from "../../contracts/limits/responses.ts";

/** Of one job or message: the others can still be changed. */
const OF_ONE: ReadonlySet<ErrorCode> = new Set([
  ...(["wrong_state", "queue_full", "job_not_found", "api_not_found", "invalid_request"] as const),
]);
const REMOVED_AT_ONCE = 50;

/** What an action has done so far. */
export class Outcome {
  changed = 0;
  skippedCount = 0;
  readonly skipped: { id: string; reason: string }[] = [];

  leave(id: string, reason: string): void {
    this.skippedCount++;
    if (this.skipped.length < SKIPPED_SHOWN_MAX) this.skipped.push({ id, reason });
  }
}

/** The reason to skip what threw. Throws it again if it concerns all. */
function reasonOf(error: unknown): string {
  if (error instanceof ServiceError && OF_ONE.has(error.code)) return error.message;
  throw error;
}

/** What the caller may do. Both throw if it may not. */
export interface Caller {
  /** Asked again and again: its key may be revoked meanwhile. */
  mayGoOn: () => void;
  /** Whether it may begin another round of the job. */
  mayRepeat: (job: JobRow) => void;
  by: DoneBy;
}

export async function actOnJobs(
  jobs: Jobs,
  { ids, action }: { ids: readonly string[]; action: JobAction },
  caller: Caller,
  outcome: Outcome,
): Promise<void> {
  const act = async (id: string) => {
    const job = await jobs.records.byId(id);
    if (job === undefined) return outcome.leave(id, "its record was removed");
    try {
      await ACTIONS[action](jobs, job, caller);
      outcome.changed++;
    } catch (error) {
      outcome.leave(id, reasonOf(error));
    }
  };
  const left = ids.values();
  const some = async () => {
    for (const id of left) {
      caller.mayGoOn();
      await act(id);
    }
  };
  await Promise.all(Array.from({ length: CHANGED_AT_ONCE }, some));
}

type Act = (jobs: Jobs, job: JobRow, caller: Caller) => Promise<unknown>;

const ACTIONS: Record<JobAction, Act> = {
  stop: async (jobs, job) => {
    if (job.end_time !== null) throw new ServiceError("wrong_state", `it has ended (${job.status})`);
    await jobs.stopJob(job.api_name, job.job_id);
  },
  resume: async (jobs, job, { mayRepeat, by }) => {
    mayRepeat(job);
    await jobs.resume(job, by);
  },
  redrive: async (jobs, job, { mayRepeat, by }) => {
    mayRepeat(job);
    await jobs.redrive(job, {}, by);
  },
  pause: (jobs, job) => jobs.pauses.pause(job),
  unpause: (jobs, job) => jobs.pauses.unpause(job),
};

const GONE = "it was removed or redriven meanwhile";

export async function removeMessages(
  queues: Queues,
  { queue, ids }: { queue: string; ids: readonly string[] },
  { mayGoOn }: Caller,
  outcome: Outcome,
): Promise<void> {
  for (let at = 0; at < ids.length; at += REMOVED_AT_ONCE) {
    mayGoOn();
    const some = ids.slice(at, at + REMOVED_AT_ONCE);
    const there = new Set((await queues.heads(queue, some)).map(({ message_id }) => message_id));
    outcome.changed += await queues.removeSome(queue, [...there]);
    for (const id of some) if (!there.has(id)) outcome.leave(id, GONE);
  }
}

/** One new round for each job, however many of its messages are selected. */
export async function redriveMessages(
  { jobs, queues }: { jobs: Jobs; queues: Queues },
  { queue, ids }: { queue: string; ids: readonly string[] },
  { mayGoOn, by }: Caller,
  outcome: Outcome,
): Promise<void> {
  const byJob = new Map<string, LetterHead[]>();
  const missing = new Set(ids);
  for (const head of await queues.heads(queue, ids)) {
    missing.delete(head.message_id);
    const ofJob = byJob.get(head.job_id);
    if (ofJob === undefined) byJob.set(head.job_id, [head]);
    else ofJob.push(head);
  }
  for (const id of missing) outcome.leave(id, GONE);
  for (const [jobId, letters] of byJob) {
    mayGoOn();
    const all = (reason: string) => {
      for (const { message_id } of letters) outcome.leave(message_id, reason);
    };
    const job = await jobs.records.byId(jobId);
    if (job === undefined) all("the record of its job was removed");
    else
      try {
        const { taken, skipped } = await jobs.redriveLetters(job, letters, by);
        outcome.changed += taken.length;
        for (const { id, reason } of skipped) outcome.leave(id, reason);
      } catch (error) {
        all(reasonOf(error));
      }
  }
}
