/** All jobs of this controller: resumes the unfinished ones at the start, runs new ones, stops and reads them. */
import { contain, reportFault } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import { describeShortage, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { WorkerCounts } from "../contracts/jobs.ts";
import type { WorkerFault } from "../protocol/messages.ts";
import { type FailurePage, failurePage } from "./end/failures.ts";
import { finishJob, makeTerminal } from "./end/finish-job.ts";
import { NewRounds } from "./end/new-round.ts";
import type { JobDeps } from "./job-deps.ts";
import { JobRun } from "./job-run.ts";
import { NO_WORKERS } from "./phase.ts";
import { failedBatches, failureGroups } from "./records/failed-batches.ts";
import { removeOrphans } from "./records/items-file.ts";
import {
  existingJobs,
  type JobPage,
  jobPages,
  type UnfinishedJob,
  unfinishedJobs,
} from "./records/job-lists.ts";
import { unexpected } from "./records/job-reasons.ts";
import { configText, findJob, type JobRow, jobById } from "./records/job-rows.ts";
import { type JobSummary, type JobTotals, jobSummary, jobTotals } from "./records/job-totals.ts";
import { claimJob } from "./records/owned-job.ts";
import { unpauseAll } from "./records/paused-jobs.ts";
import { type Preview, previewSubmission } from "./submit/select-input.ts";
import { submitJob } from "./submit/submit-job.ts";

const FAILURE_GROUPS_MAX = 500;

export class Jobs implements Service {
  private readonly deps: JobDeps;
  private readonly lostWorkers: ReadonlyMap<string, number>;
  private readonly runs = new Map<string, JobRun>();
  private readonly newRounds: NewRounds;
  private readonly gone = new AbortController();

  /** `lostWorkers`: how many workers each job had when the machine went down, if it did. */
  constructor(deps: JobDeps, lostWorkers: ReadonlyMap<string, number>) {
    this.deps = deps;
    this.lostWorkers = lostWorkers;
    this.newRounds = new NewRounds(deps.db);
  }

  async start(): Promise<void> {
    const { db, dataDir, knowsFiles } = this.deps;
    if (knowsFiles)
      await removeOrphans(dataDir, (ids) => existingJobs(db, ids)).catch((error: unknown) =>
        reportFault(error, "files of submissions that were cut off"),
      );
    for (const row of await unfinishedJobs(this.deps.db))
      await this.goOn(row).catch((error: Error) => this.endUnexpected(row.job_id, error));
  }

  private async goOn({ job_id, closing, paused }: UnfinishedJob): Promise<void> {
    if (closing !== null) await this.waitingForDisk(job_id, () => makeTerminal(this.deps, job_id));
    else if (paused === null) await this.run(job_id, this.lostWorkers.get(job_id));
  }

  /** Ends a job that could not begin, so that the next one can. If this fails too, the next start tries again. */
  private async endUnexpected(jobId: string, error: Error): Promise<void> {
    this.deps.log.error({ job_id: jobId, err: error }, "a job could not be begun");
    await finishJob(this.deps, jobId, { kind: "unexpected", reason: unexpected(error) }).catch(
      (again: unknown) => reportFault(again, `the end of job ${jobId}`),
    );
  }

  async stop(): Promise<void> {
    this.gone.abort();
    await Promise.all(
      [...this.runs.values()].map((run) =>
        run.stop().catch((error) => reportFault(error, "a job that stops")),
      ),
    );
  }

  /** A job is in progress. */
  get isBusy(): boolean {
    return this.runs.size > 0;
  }

  /** Continues all paused jobs; resolves to their number. */
  async unpauseAll(): Promise<number> {
    const ids = await unpauseAll(this.deps.db, wallMs());
    for (const id of ids) {
      this.deps.jobLog(id, "no longer paused");
      await this.run(id);
    }
    this.deps.onLetters();
    return ids.length;
  }

  async submit(
    api: { name: string; api_id: string },
    body: Buffer,
    idempotencyKey: string | undefined,
    left?: AbortSignal,
  ): Promise<{ row: JobRow; isReplay: boolean }> {
    const { job_id, isReplay, olderNames } = await submitJob(this.deps, api, body, idempotencyKey, left);
    for (const { older, newer } of olderNames)
      this.deps.jobLog(
        job_id,
        `the submission has ${older}, which is called ${newer} here; both are accepted`,
      );
    if (!isReplay) await this.run(job_id);
    return { row: (await jobById(this.deps.db, job_id))!, isReplay };
  }

  /** Totals of all jobs and queues, for `/-/metrics`. */
  totals(): Promise<JobTotals> {
    return jobTotals(this.deps.db);
  }

  /** Failed batches counted by their errors, the most frequent first. One by one: each error has up to 97 KiB. */
  async *failureGroups(job: JobRow) {
    for (const group of await failureGroups(this.deps.db, job.job_id, FAILURE_GROUPS_MAX)) {
      const { batches, first_batch_index } = group;
      const [row] = await failedBatches(this.deps.db, job.job_id, first_batch_index - 1, 1);
      // A redrive may have removed it.
      if (row?.batch_index !== first_batch_index) continue;
      const { type, message, traceback } = JSON.parse(row.error_json) as WorkerFault;
      yield { batches, first_batch_index, error: { type, message, traceback } };
    }
  }

  /** Shows which input a submission selects, without creating a job. */
  preview(body: Buffer, idempotencyKey: string | undefined, left?: AbortSignal): Promise<Preview> {
    return previewSubmission(this.deps.store, body, idempotencyKey, left);
  }

  async get(apiName: string, jobId: string): Promise<JobRow> {
    const row = await findJob(this.deps.db, apiName, jobId);
    if (row === undefined) throw jobNotFound(apiName, jobId);
    return row;
  }

  byId(jobId: string): Promise<JobRow | undefined> {
    return jobById(this.deps.db, jobId);
  }

  /** A page in parts. The generator returns whether there are more jobs. */
  list(apiName: string, page: JobPage): AsyncGenerator<JobRow[], boolean> {
    return jobPages(this.deps.db, apiName, page);
  }

  /** A job's own `config`, as the text that was sent. */
  configText(jobId: string): Promise<string> {
    return configText(this.deps.db, jobId);
  }

  summary(apiName: string): Promise<JobSummary> {
    return jobSummary(this.deps.db, apiName);
  }

  failures(job: JobRow, after: number, limit: number): Promise<FailurePage> {
    return failurePage(this.deps, job, after, limit);
  }

  /** Describes in a sentence what a job in progress waits for. */
  waiting(jobId: string): string | undefined {
    return this.runs.get(jobId)?.waiting();
  }

  workerCounts(jobId: string): WorkerCounts {
    return this.runs.get(jobId)?.workerCounts() ?? NO_WORKERS;
  }

  /** Stops a job in progress; may be repeated. Throws `wrong_state` if the job had another end. */
  async stopJob(apiName: string, jobId: string): Promise<void> {
    await this.get(apiName, jobId);
    const run = this.runs.get(jobId);
    if (run === undefined) await finishJob(this.deps, jobId, { kind: "stopped" });
    else await run.stopJob();
    const row = await this.get(apiName, jobId);
    if (row.closing === "status_stopped") return;
    throw new ServiceError(
      "wrong_state",
      `job ${jobId} cannot be stopped: it has ended (${row.closing ?? row.status})`,
    );
  }

  /** Begins a new round for failed batches; resolves to the job after that. Throws `wrong_state`. */
  async redrive(job: JobRow, error: string | undefined): Promise<JobRow> {
    await this.leftBy(job.job_id);
    const batches = await this.newRounds.redrive(job.job_id, error);
    this.deps.jobLog(job.job_id, `redriving ${batches} failed batches`);
    return this.nextRound(job);
  }

  /** Begins a new round for the batches that were never settled. Throws `wrong_state`. */
  async resume(job: JobRow): Promise<JobRow> {
    await this.leftBy(job.job_id);
    await this.newRounds.resume(job.job_id);
    this.deps.jobLog(job.job_id, "resuming");
    return this.nextRound(job);
  }

  /** Waits until the workers of an ended round are gone. */
  private async leftBy(jobId: string): Promise<void> {
    const row = await jobById(this.deps.db, jobId);
    if (row?.end_time !== null) await this.runs.get(jobId)?.ended;
  }

  private async nextRound({ job_id }: JobRow): Promise<JobRow> {
    await this.run(job_id);
    return (await jobById(this.deps.db, job_id))!;
  }

  /** Stops the jobs in progress of an API that is being deleted. */
  async stopJobsOf(apiName: string): Promise<void> {
    const rows = (await unfinishedJobs(this.deps.db)).filter((row) => row.api_name === apiName);
    for (const row of rows) await this.stopJob(apiName, row.job_id).catch(ignoreWrongState);
  }

  private async run(jobId: string, lostWorkers = 0): Promise<void> {
    const { db, epoch } = this.deps;
    // The job is recorded already, so its submission must not fail here.
    const row = await this.waitingForDisk(jobId, () => claimJob(db, jobId, epoch));
    if (row === undefined) return;
    // An exception here ends the job. The submission does not fail, because the job is recorded as promised.
    try {
      const run = new JobRun(this.deps, row, lostWorkers);
      this.runs.set(jobId, run);
      contain("a job's end", async () => {
        await run.ended;
        if (this.runs.get(jobId) === run) this.runs.delete(jobId);
      });
      await run.start();
    } catch (error) {
      await this.endUnexpected(jobId, error as Error);
    }
  }

  private waitingForDisk<T>(jobId: string, work: () => Promise<T>): Promise<T> {
    const onWait = (error: unknown) =>
      this.deps.jobLog(jobId, `${describeShortage(error)}: the job waits until there is room`);
    return whenDiskHasSpace(work, { onWait, signal: this.gone.signal });
  }
}

export function jobNotFound(apiName: string, jobId: string): ServiceError {
  return new ServiceError(
    "job_not_found",
    `API ${apiName} has no job "${jobId}"; \`quern job list ${apiName}\` shows its jobs`,
  );
}

function ignoreWrongState(error: unknown): void {
  if (!(error instanceof ServiceError && error.code === "wrong_state")) throw error;
}
