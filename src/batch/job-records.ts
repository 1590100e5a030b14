/** Reads the jobs of this controller for the control plane, whether they run or have ended. It changes nothing. */
import { ServiceError } from "../contracts/errors.ts";
import type { WorkerFault } from "../protocol/messages.ts";
import { type FailurePage, type FailureSource, type FailuresAsked, failurePage } from "./end/failures.ts";
import { commonMessage } from "./end/group-message.ts";
import { type JobDurations, jobDurations } from "./end/job-durations.ts";
import { letterTotals } from "./letters/queue-counts.ts";
import { errorsOfGroup, failureGroups } from "./records/failed-batches.ts";
import { type JobPage, jobPages } from "./records/job-lists.ts";
import { configText, findJob, type JobRow, jobById } from "./records/job-rows.ts";
import { type JobSummary, type JobTotal, jobSummary, jobTotals } from "./records/job-totals.ts";
import { type RoundRow, roundsOf } from "./rounds/round-rows.ts";
import { type NumberedSpan, spansOf } from "./spans/span-rows.ts";

const FAILURE_GROUPS_MAX = 500;

export class JobRecords {
  private readonly source: FailureSource;

  constructor(source: FailureSource) {
    this.source = source;
  }

  /** Throws `job_not_found`. */
  async get(apiName: string, jobId: string): Promise<JobRow> {
    const row = await findJob(this.source.db, apiName, jobId);
    if (row === undefined) throw jobNotFound(apiName, jobId);
    return row;
  }

  byId(jobId: string): Promise<JobRow | undefined> {
    return jobById(this.source.db, jobId);
  }

  /** A page in parts. The generator returns whether there are more jobs. */
  list(apiName: string, page: JobPage): AsyncGenerator<JobRow[], boolean> {
    return jobPages(this.source.db, apiName, page);
  }

  /** A job's own `config`, as the text that was sent. */
  configText(jobId: string): Promise<string> {
    return configText(this.source.db, jobId);
  }

  summary(apiName: string): Promise<JobSummary> {
    return jobSummary(this.source.db, apiName);
  }

  /** Totals of all jobs and queues, for `/-/metrics`. */
  async totals(): Promise<{ byApi: JobTotal[]; letters: { queue: string; messages: number }[] }> {
    const { db } = this.source;
    return { byApi: await jobTotals(db), letters: await letterTotals(db) };
  }

  /** When its workers worked. */
  spans(jobId: string): Promise<NumberedSpan[]> {
    return spansOf(this.source.db, jobId);
  }

  /** How its rounds began, and how former ones ended; not of all of them (round-rows.ts). */
  rounds(jobId: string): Promise<RoundRow[]> {
    return roundsOf(this.source.db, jobId);
  }

  durations(): Promise<JobDurations[]> {
    return jobDurations(this.source.db);
  }

  failures(job: JobRow, asked: FailuresAsked): Promise<FailurePage> {
    return failurePage(this.source, job, asked);
  }

  /** Failed batches counted by their errors, the most frequent first. One by one: each error has up to 97 KiB. */
  async *failureGroups({ job_id }: JobRow) {
    const { db } = this.source;
    for (const group of await failureGroups(db, job_id, FAILURE_GROUPS_MAX)) {
      const { batches, first_batch_index, error_group } = group;
      const rows = await errorsOfGroup(db, job_id, error_group, first_batch_index);
      const faults = rows.map(({ error_json }) => JSON.parse(error_json) as WorkerFault);
      const [first] = faults;
      if (first === undefined) continue;
      const common_message = commonMessage(faults.map(({ message }) => message));
      const { type, message, traceback } = first;
      yield { batches, first_batch_index, common_message, error: { type, message, traceback } };
    }
  }
}

export function jobNotFound(apiName: string, jobId: string): ServiceError {
  return new ServiceError(
    "job_not_found",
    `API ${apiName} has no job "${jobId}"; \`quern job list ${apiName}\` shows its jobs`,
  );
}
