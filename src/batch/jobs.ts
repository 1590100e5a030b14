/**
 * What users do to jobs: submit, stop, redrive and resume them (pauses are in pauses.ts). At the start it resumes the
 * unfinished ones.
 */
import { contain, reportFault } from "../base/boundary.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { RedriveFilter, WorkerCounts } from "../contracts/jobs.ts";
import type { DoneBy } from "../contracts/keys.ts";
import { CONTINUED_AT_ONCE } from "../contracts/limits/jobs.ts";
import type { Database } from "../database/database.ts";
import { closeJob, makeTerminal } from "./end/finish-job.ts";
import { NewRounds } from "./end/new-round.ts";
import type { LetterOfJob, RedrivenLetters } from "./end/redrive-letters.ts";
import { StopsInProgress } from "./end/stops-in-progress.ts";
import type { JobApi, JobDeps } from "./job-deps.ts";
import { JobRecords } from "./job-records.ts";
import { type QueueCounts, queueCounts } from "./letters/queue-counts.ts";
import { FoundJobs } from "./listing/found-jobs.ts";
import { type JobLook, lookAt } from "./look-at-job.ts";
import { Pauses } from "./pauses.ts";
import { NO_WORKERS } from "./phase.ts";
import { CheckPlaces } from "./places/check-places.ts";
import { removeOrphans } from "./records/items-file.ts";
import { existingJobs, type UnfinishedJob, unfinishedJobs } from "./records/job-lists.ts";
import { closeStopped } from "./records/job-moves.ts";
import { type JobRow, jobById } from "./records/job-rows.ts";
import { JobResults } from "./results/job-results.ts";
import { RunsInProgress } from "./runs-in-progress.ts";
import { type Preview, previewSubmission } from "./submit/preview-submission.ts";
import type { SentSubmission } from "./submit/read-submission.ts";
import { type SubmitDeps, type SubmittedTo, submitJob } from "./submit/submit-job.ts";

export class Jobs implements Service {
  readonly records: JobRecords;
  readonly results: JobResults;
  readonly pauses: Pauses;
  /** The jobs of all APIs. */
  readonly found: FoundJobs;
  private readonly deps: JobDeps;
  private readonly stopping = new AbortController();
  private readonly lostWorkers: ReadonlyMap<string, number>;
  private readonly runs: RunsInProgress;
  private readonly stops: StopsInProgress;
  private readonly newRounds: NewRounds;
  private readonly checkPlaces = new CheckPlaces();
  /** For what follows a change that is recorded: it must happen once the database can be reached again. */
  private readonly patientDeps: JobDeps;

  /** `lostWorkers`: how many workers each job had when the machine went down, if it did. */
  constructor(deps: JobDeps, lostWorkers: ReadonlyMap<string, number>) {
    this.deps = { ...deps, stopping: this.stopping.signal };
    this.records = new JobRecords(deps);
    this.results = new JobResults(deps);
    this.found = new FoundJobs(deps.db);
    this.runs = new RunsInProgress(this.deps);
    this.stops = new StopsInProgress(deps.db);
    this.pauses = new Pauses(this.deps, this.runs);
    this.lostWorkers = lostWorkers;
    this.newRounds = new NewRounds(deps.db, deps.assertDeployed, deps.reach);
    this.patientDeps = this.runs.patientDeps;
  }

  async start(): Promise<void> {
    const { db, dataDir, knowsFiles } = this.deps;
    if (knowsFiles)
      await removeOrphans(dataDir, (ids) => existingJobs(db, ids)).catch((error: unknown) =>
        reportFault(error, "files of submissions that were cut off"),
      );
    const rows = await unfinishedJobs(db);
    // Together, so that their changes share commits.
    for (let at = 0; at < rows.length; at += CONTINUED_AT_ONCE)
      await Promise.all(rows.slice(at, at + CONTINUED_AT_ONCE).map((row) => this.goOn(row)));
  }

  private goOn(row: UnfinishedJob): Promise<void> {
    return this.runs.goOn(row, this.lostWorkers.get(row.job_id));
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all([this.runs.stopAll(), this.deps.warmWorkers.stop()]);
  }

  /** A job is in progress. */
  get isBusy(): boolean {
    return this.runs.count > 0;
  }

  async submit(api: SubmittedTo, sent: SentSubmission): Promise<{ row: JobRow; isReplay: boolean }> {
    const { job_id, isReplay, olderNames } = await submitJob(
      this.checksFor(api.name, sent.sender),
      api,
      sent,
    );
    for (const { older, newer } of olderNames)
      this.deps.jobLog(
        job_id,
        `the submission has ${older}, which is called ${newer} here; both are accepted`,
      );
    if (!isReplay) await this.runs.begin(job_id);
    return { row: (await jobById(this.deps.db, job_id))!, isReplay };
  }

  /** Shows which input a submission selects, without creating a job. */
  preview(api: SubmittedTo, sent: SentSubmission): Promise<Preview> {
    return previewSubmission(this.checksFor(api.name, sent.sender), api, sent);
  }

  private checksFor(api: string, sender: string): SubmitDeps {
    return {
      ...this.deps,
      assertMayBegin: () => this.runs.assertMayBegin(api),
      takePlace: (over) => this.checkPlaces.take({ sender, api }, over),
    };
  }

  /** Describes in a sentence what a job in progress waits for. `withNames` names other APIs and their jobs. */
  waiting(jobId: string, withNames: boolean): string | undefined {
    return this.runs.of(jobId)?.waiting(withNames);
  }

  /** What a job in progress does at this moment; undefined if it has no run here. */
  look(jobId: string): JobLook | undefined {
    const run = this.runs.of(jobId);
    return run === undefined ? undefined : lookAt(run, performance.now());
  }

  /** The last errors of queues that do not respond are in the logs; here are the messages that wait for one. */
  waitingLetters(queue: string): Promise<QueueCounts> {
    return queueCounts(this.deps.db, queue);
  }

  /** The compute of one worker of a job, and how long it may start; undefined if its version is gone. */
  async apiOf({ api_name, api_id }: JobRow): Promise<JobApi | undefined> {
    return this.deps.findApi(api_name, api_id).catch(() => undefined);
  }

  /** Of each API with a job that waits for its first worker: since when the first of them does. */
  queuedSince(): Map<string, string> {
    return this.runs.queuedSince();
  }

  /** The jobs that have waited for their first worker since before `time`, those that wait longest first. */
  queuedBefore(time: string, most: number) {
    return this.runs.queuedBefore(time, most);
  }

  workerCounts(jobId: string): WorkerCounts {
    return this.runs.of(jobId)?.workerCounts() ?? NO_WORKERS;
  }

  /** Stops a job in progress; may be repeated. Throws `wrong_state` if it had another end, `disk_full` if it waits. */
  async stopJob(apiName: string, jobId: string): Promise<void> {
    await this.records.get(apiName, jobId);
    await this.stops.stop(jobId, {
      end: () => this.endStopped(jobId, false),
      shortage: () => [...(this.runs.of(jobId)?.diskWait.waiting ?? [])][0],
    });
    const row = await this.records.get(apiName, jobId);
    if (row.closing === "status_stopped") return;
    const why =
      row.end_time === null
        ? `its work is done: it ends (${row.closing}) once its manifest is written`
        : `it has ended (${row.status})`;
    throw new ServiceError("wrong_state", `job ${jobId} cannot be stopped: ${why}`);
  }

  /** Begins a new round for failed batches; resolves to the job after that. Throws `wrong_state` or `queue_full`. */
  async redrive(job: JobRow, filter: RedriveFilter, by: DoneBy): Promise<JobRow> {
    await this.leftBy(job.job_id);
    await this.runs.assertMayBegin(job.api_name);
    const batches = await this.newRounds.redrive(job.job_id, filter, by);
    this.deps.jobLog(job.job_id, `redriving ${batches} failed batches`);
    return this.nextRound(job);
  }

  /**
   * Begins a new round for the batches or items of these messages, and removes the messages. Those whose batches have
   * succeeded since stay. Throws `wrong_state` or `queue_full`.
   */
  async redriveLetters(job: JobRow, letters: readonly LetterOfJob[], by: DoneBy): Promise<RedrivenLetters> {
    await this.leftBy(job.job_id);
    await this.runs.assertMayBegin(job.api_name);
    const result = await this.newRounds.redriveLetters(job.job_id, letters, by);
    if (result.taken.length === 0) return result;
    this.deps.jobLog(job.job_id, `redriving the batches of ${result.taken.length} messages`);
    await this.runs.begin(job.job_id);
    return result;
  }

  /** Begins a new round for the batches that were never settled. Throws `wrong_state` or `queue_full`. */
  async resume(job: JobRow, by: DoneBy): Promise<JobRow> {
    await this.leftBy(job.job_id);
    await this.runs.assertMayBegin(job.api_name);
    await this.newRounds.resume(job.job_id, by);
    this.deps.jobLog(job.job_id, "resuming");
    return this.nextRound(job);
  }

  /** Waits until the workers of an ended round are gone. */
  async leftBy(jobId: string): Promise<void> {
    const row = await jobById(this.deps.db, jobId);
    if (row?.end_time !== null) await this.runs.of(jobId)?.ended;
  }

  private async nextRound({ job_id }: JobRow): Promise<JobRow> {
    await this.runs.begin(job_id);
    return (await jobById(this.deps.db, job_id))!;
  }

  /**
   * Records that the unfinished jobs of an API are stopped. They go on until `stopJobsOf`; after a kill in between, the
   * next controller ends them. Resolves to their ids, oldest first.
   */
  closeJobsOf(apiName: string): Promise<string[]> {
    return closeJobsOf(this.deps.db, apiName);
  }

  /** Stops the unfinished jobs of an API, durably before the first of them ends. */
  async stopJobsOf(apiName: string): Promise<void> {
    const ids = await closeJobsOf(this.patientDeps.db, apiName);
    // Newest first, so that jobs that wait do not get the compute of those that end.
    for (const id of ids.reverse()) await this.endStopped(id, true);
    await this.deps.warmWorkers.endOf(apiName);
  }

  /** `isClosed`: its closing record is there already, and nobody else makes the end. */
  private async endStopped(jobId: string, isClosed: boolean): Promise<void> {
    const run = this.runs.of(jobId) ?? (await this.runs.begun(jobId));
    if (run !== undefined) {
      await run.stopJob();
      // If it was leaving because of a pause, nobody else makes the end.
      if (run.isPausing)
        contain("a job's end", () => run.ended.then(() => makeTerminal(this.patientDeps, jobId)));
    } else if (isClosed || (await closeJob(this.patientDeps, jobId, { kind: "stopped" })))
      await makeTerminal(this.patientDeps, jobId);
  }
}

async function closeJobsOf(db: Database, apiName: string): Promise<string[]> {
  const rows = (await unfinishedJobs(db)).filter((row) => row.api_name === apiName);
  const ids = rows.map(({ job_id }) => job_id);
  await closeStopped(db, ids);
  return ids;
}
