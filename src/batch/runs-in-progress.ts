/**
 * The runs of this controller's jobs that have not ended: begins them, knows them by their job, stops all when the
 * server shuts down. A run that cannot begin ends its own job only.
 */
import { contain, reportFault } from "../base/boundary.ts";
import { type DiskWait, describeWait, whenDiskWorks } from "../base/disk-full.ts";
import { unavailabilityOf } from "../database/database.ts";
import { patientDatabase } from "../database/patient-database.ts";
import { type EndedRound, endForError, makeTerminal } from "./end/finish-job.ts";
import { EnqueuePlaces, SuspectPlace } from "./enqueue/enqueue-places.ts";
import type { JobDeps } from "./job-deps.ts";
import { JobRun, type SharedByRuns } from "./job-run.ts";
import type { UnfinishedJob } from "./records/job-lists.ts";
import type { JobRow } from "./records/job-rows.ts";
import { claimJob } from "./records/owned-job.ts";
import { countPaused } from "./records/paused-jobs.ts";
import { RunTicker } from "./run-ticker.ts";
import { assertMayBegin } from "./submit/unfinished-jobs.ts";

export class RunsInProgress {
  private readonly deps: JobDeps;
  private readonly runs = new Map<string, JobRun>();
  /** Those that are about to begin. */
  private readonly beginning = new Map<string, Promise<void>>();
  private readonly byApi = new Map<string, number>();
  private readonly shared: SharedByRuns = {
    places: { items: new EnqueuePlaces(), files: new EnqueuePlaces(), suspects: new SuspectPlace() },
    ticker: new RunTicker(),
  };
  private readonly gone = new AbortController();
  /** With a database that waits until it can be reached, or until the server shuts down. */
  readonly patientDeps: JobDeps;

  constructor(deps: JobDeps) {
    this.deps = deps;
    const onWait = (error: unknown) =>
      deps.log.error({ event: "resources_short" }, describeWait(error, "waiting"));
    this.patientDeps = { ...deps, db: patientDatabase(deps.db, { onWait, signal: this.gone.signal }) };
  }

  get count(): number {
    return this.runs.size;
  }

  /** Throws `queue_full` if no more jobs of this API may begin. Those of a former controller always go on. */
  async assertMayBegin(apiName: string): Promise<void> {
    const paused = await countPaused(this.deps.db, apiName);
    assertMayBegin(apiName, (this.byApi.get(apiName) ?? 0) + paused.ofApi, this.runs.size + paused.ofAll);
  }

  of(jobId: string): JobRun | undefined {
    return this.runs.get(jobId);
  }

  /** Of each API with a job that waits for its first worker: since when the first of them does. */
  queuedSince(): Map<string, string> {
    const first = new Map<string, string>();
    for (const { job } of this.runs.values()) {
      const { api_name: api, queued_time: since } = job;
      if (since !== null && since < (first.get(api) ?? "~")) first.set(api, since);
    }
    return first;
  }

  /** The jobs that have waited for their first worker since before `time`, those that wait longest first. */
  queuedBefore(time: string, most: number): Pick<JobRow, "job_id" | "api_name" | "queued_time">[] {
    const queued = [...this.runs.values()].flatMap(({ job }) =>
      job.queued_time !== null && job.queued_time < time ? [job] : [],
    );
    return queued.sort((a, b) => (a.queued_time! < b.queued_time! ? -1 : 1)).slice(0, most);
  }

  /** Continues a job of the previous controller. `lostWorkers`: how many it had when the machine went down. */
  async goOn(job: UnfinishedJob, lostWorkers: number | undefined): Promise<void> {
    if (job.closing !== null) return this.endSoon(job);
    try {
      if (job.paused === null) await this.begin(job.job_id, lostWorkers);
    } catch (error) {
      this.endUnexpected(job, error as Error);
    }
  }

  /** In the background: the store of its output may be away, and other jobs go on meanwhile. */
  private endSoon(job: UnfinishedJob): void {
    const { job_id } = job;
    contain(
      "a job's end",
      () => whenDiskWorks(() => makeTerminal(this.patientDeps, job_id), this.diskWait(job_id)),
      (error) => this.endUnexpected(job, error),
    );
  }

  /** The run of a job, once it is known whether it has begun. */
  async begun(jobId: string): Promise<JobRun | undefined> {
    // Its caller says why, if it fails.
    await this.beginning.get(jobId)?.catch(() => {});
    return this.of(jobId);
  }

  /**
   * Begins a run of a job, unless it has one; if that is leaving because of a pause, once it has left. One beginning
   * after the other: two runs at once would run each batch twice.
   */
  begin(jobId: string, lostWorkers = 0): Promise<void> {
    const before = this.begun(jobId);
    const begun = before.then(async () => {
      const run = this.of(jobId);
      if (run !== undefined && !run.isPausing) return;
      await run?.ended;
      await this.claim(jobId, lostWorkers);
    });
    this.beginning.set(jobId, begun);
    return begun.finally(() => {
      if (this.beginning.get(jobId) === begun) this.beginning.delete(jobId);
    });
  }

  private async claim(jobId: string, lostWorkers: number): Promise<void> {
    const { epoch } = this.deps;
    // The job is recorded already, so its submission must not fail here.
    const row = await claimJob(patientDatabase(this.deps.db, this.diskWait(jobId)), jobId, epoch);
    if (row === undefined) return;
    // An exception here ends the job. The submission does not fail, because the job is recorded as promised.
    try {
      const run = new JobRun(this.deps, row, lostWorkers, this.shared);
      this.add(run);
      await run.start();
    } catch (error) {
      this.endUnexpected(row, error as Error);
    }
  }

  private add(run: JobRun): void {
    const { job_id, api_name } = run.job;
    this.runs.set(job_id, run);
    this.byApi.set(api_name, (this.byApi.get(api_name) ?? 0) + 1);
    contain("a job's end", async () => {
      await run.ended;
      if (this.runs.get(job_id) === run) this.runs.delete(job_id);
      const left = this.byApi.get(api_name)! - 1;
      if (left > 0) this.byApi.set(api_name, left);
      else this.byApi.delete(api_name);
    });
  }

  async stopAll(): Promise<void> {
    this.gone.abort();
    await Promise.all(
      [...this.runs.values()].map((run) =>
        run.stop().catch((error) => reportFault(error, "a job that stops")),
      ),
    );
  }

  /** Ends a job that could not begin. */
  private endUnexpected(job: EndedRound, error: Error): void {
    // The server shuts down.
    if (unavailabilityOf(error) !== undefined) return;
    const { job_id } = job;
    this.deps.log.error({ event: "job_not_started", job_id, err: error }, "a job could not be started");
    endForError(this.patientDeps, job, error);
  }

  private diskWait(jobId: string): DiskWait {
    const onWait = (error: unknown) => this.deps.jobLog(jobId, describeWait(error, "the job waits"));
    return { onWait, signal: this.gone.signal };
  }
}
