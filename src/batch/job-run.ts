/**
 * One run of one job by its owner, in phases: preparing, enqueuing, dispatching (phase.ts). All causes of an end meet
 * in `end`, the only writer of the closing record here. A stop from outside wins or loses there like any other cause.
 */
import { contain } from "../base/boundary.ts";
import { timestamp } from "../base/clock.ts";
import { type DiskWait, describeWait } from "../base/disk-full.ts";
import type { Service } from "../base/service.ts";
import type { WorkerCounts } from "../contracts/jobs.ts";
import { STOP_GRACE_MS } from "../contracts/limits/jobs.ts";
import { unavailabilityOf } from "../database/database.ts";
import { patientDatabase } from "../database/patient-database.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { admitOf } from "./admit.ts";
import { Dispatching, type DispatchPlan } from "./dispatching.ts";
import { closeJob, endAtAnyRate, finishJob } from "./end/finish-job.ts";
import { JobDeadline } from "./end/job-deadline.ts";
import type { PlacesByInput } from "./enqueue/enqueue-places.ts";
import { EnqueueTurns } from "./enqueue/enqueue-turns.ts";
import { isSuspect } from "./enqueue/enqueuing-deaths.ts";
import { Enqueuing } from "./enqueuing.ts";
import type { JobDeps } from "./job-deps.ts";
import type { JobOutput } from "./output/job-output.ts";
import { openOutput } from "./output/open-output.ts";
import { RunOutput } from "./output/run-output.ts";
import { type Phase, PREPARING, type RunOfJob, waitingToEnqueue } from "./phase.ts";
import { type JobInput, jobInput } from "./records/job-input.ts";
import { outputFailed, unexpected } from "./records/job-reasons.ts";
import type { JobRow } from "./records/job-rows.ts";
import type { EndCause } from "./records/job-status.ts";
import { FormerOwner, setNotQueued, setStartTime } from "./records/owned-job.ts";
import { storedInput } from "./records/stored-input.ts";
import type { RunTicker, Ticking } from "./run-ticker.ts";
import { WorkerSpans } from "./spans/worker-spans.ts";
import { StoreWait } from "./store-wait.ts";

/** What the runs of all jobs share. */
export interface SharedByRuns {
  places: PlacesByInput;
  ticker: RunTicker;
}

export class JobRun implements Service, RunOfJob, Ticking {
  /** Resolves when the job has ended, or this run was stopped without ending it, and its workers are gone. */
  readonly ended: Promise<void>;
  readonly deps: JobDeps;
  readonly job: JobRow;
  readonly lostWorkers: number;
  readonly startTime: string;
  readonly diskWait: DiskWait;
  readonly store: ObjectStore;
  readonly input: JobInput;
  readonly spans: WorkerSpans;
  output: JobOutput | undefined;
  readonly over: AbortSignal;
  isEnding = false;
  isPausing = false;
  private readonly ownOutput = new RunOutput();
  phase: Phase = PREPARING;
  private readonly places: PlacesByInput;
  readonly deadline: JobDeadline;
  /** Aborted when nobody waits for the input any more. */
  private readonly left = new AbortController();
  /** Aborted when the server shuts down. The next controller does writes again that wait for disk space. */
  private readonly gone = new AbortController();
  readonly storeWait: StoreWait;
  private readonly ticker: RunTicker;
  private resolveEnded: () => void = () => {};

  /** `lostWorkers`: how many the job had when the machine went down. */
  constructor(deps: JobDeps, job: JobRow, lostWorkers: number, { places, ticker }: SharedByRuns) {
    const jobLog = (line: string) => deps.jobLog(job.job_id, line);
    this.diskWait = {
      onWait: (error) => jobLog(describeWait(error, "the job waits")),
      signal: this.gone.signal,
      waiting: new Set(),
    };
    this.deps = { ...deps, db: patientDatabase(deps.db, this.diskWait) };
    this.job = job;
    this.spans = new WorkerSpans(this.deps.db, job.job_id);
    this.lostWorkers = lostWorkers;
    this.places = places;
    this.ticker = ticker;
    this.startTime = job.start_time ?? timestamp();
    this.deadline = new JobDeadline(job.timeout_s, job.round_started_time ?? job.created_time);
    this.over = this.left.signal;
    this.storeWait = new StoreWait(jobLog, this.over);
    this.store = new PatientStore(deps.store, this.storeWait);
    this.input = jobInput({ ...this.deps, store: this.store, jobId: job.job_id }, this.diskWait);
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve;
    });
  }

  async start(): Promise<void> {
    this.ticker.add(this);
    this.inside(() => this.run());
  }

  /** An exception in the job's work ends this job only. */
  private inside(work: () => unknown): void {
    contain("a job", work, (error) => this.unexpected(error));
  }

  /** Shuts down without ending the job. Running batches may finish within the grace period; others cost no attempt. */
  async stop(): Promise<void> {
    if (this.isEnding) return this.ended;
    this.isEnding = true;
    this.ticker.remove(this);
    this.left.abort();
    this.gone.abort();
    try {
      await this.phase.workers.stopAll(STOP_GRACE_MS);
      await this.phase.leave();
      await this.ownOutput.close();
    } finally {
      this.resolveEnded();
    }
  }

  /** Stops the job, for a DELETE or because its API is deleted; false if it had another end. */
  async stopJob(): Promise<boolean> {
    return this.end({ kind: "stopped" });
  }

  /** Ends this run once its batches in hand have ended. The job goes on when it is continued. */
  async pause(): Promise<void> {
    this.isPausing = true;
    await Promise.race([this.phase.drain(), this.ended]);
    await this.stop();
  }

  hasWorker(): void {
    if (this.rests) this.inside(() => setNotQueued(this.deps.db, this.job));
    this.ticker.wake(this);
  }

  waiting(withNames: boolean): string | undefined {
    return this.storeWait.describe() ?? this.phase.waiting(withNames);
  }

  workerCounts(): WorkerCounts {
    return this.phase.workers.counts(performance.now());
  }

  /** Runs the phases in order. Stops early if the job is ending. */
  private async run(): Promise<void> {
    const { deps, job } = this;
    await setStartTime(deps.db, job.job_id, deps.epoch, this.startTime);
    // Only these fields are kept: the paths of a selection may have 10 MB.
    const { kind, batch_size: batchSize, batch_count } = await storedInput(deps.db, job.job_id);
    this.output = await this.ownOutput.opened(this.openOutput());
    const places = isSuspect(job) ? this.places.suspects : this.places[kind === "items" ? "items" : "files"];
    const turns = new EnqueueTurns(places, job.api_name, this.over);
    if (!(await this.mayEnqueue(turns))) return;
    const enqueued = await this.enqueue(turns, batch_count).finally(() => turns.end());
    if (enqueued === undefined) return;
    const { enqueuing, ...plan } = enqueued;
    await this.dispatch(enqueuing, { ...plan, batchSize, kind });
  }

  private openOutput(): Promise<JobOutput | undefined> {
    const { deps, job, store, diskWait } = this;
    const own = { ...deps, store, diskWait, admit: admitOf(this), jobId: job.job_id, round: job.round };
    return openOutput({ ...own, onError: (error) => this.failOutput(error) }, job);
  }

  /** Undefined if the job ends instead. */
  private async enqueue(turns: EnqueueTurns, batch_count: number | undefined) {
    const api = await this.deps.findApi(this.job.api_name, this.job.api_id);
    if (this.isEnding || this.checkTimeout()) return undefined;
    const enqueuing = new Enqueuing(this, api, turns, { batch_count });
    this.phase = enqueuing;
    enqueuing.workers.startMissing();
    const totalBatches = await enqueuing.enqueue();
    return totalBatches === undefined ? undefined : { enqueuing, totalBatches, timeoutMs: api.timeoutMs };
  }

  /** Waits for the first turn if the job is to be enqueued; false if it ends before. */
  private async mayEnqueue(turns: EnqueueTurns): Promise<boolean> {
    if (this.job.status !== "status_enqueuing") return true;
    this.phase = waitingToEnqueue(turns);
    return turns.begin();
  }

  private async dispatch(before: Enqueuing, plan: DispatchPlan): Promise<void> {
    const dispatching = await Dispatching.begin(this, before, plan);
    if (this.isEnding) return dispatching.leave();
    this.phase = dispatching;
    dispatching.start();
  }

  /** True if this cause won the race for the closing record. Workers stop after that record. */
  private async end(cause: EndCause): Promise<boolean> {
    if (this.isEnding && cause.kind !== "stopped") return false;
    const isFirst = !this.isEnding;
    this.isEnding = true;
    this.ticker.remove(this);
    this.left.abort();
    const { phase } = this;
    try {
      await phase.close();
      const { onWait, onResume } = this.storeWait;
      const deps = { ...this.deps, storeWait: { onWait, onResume } };
      return await (isFirst ? finishJob : closeJob)(deps, this.job.job_id, cause);
    } finally {
      if (isFirst) contain("a job's end", () => this.leaveWorkers(phase, cause).finally(this.resolveEnded));
    }
  }

  private async leaveWorkers(phase: Phase, cause: EndCause): Promise<void> {
    await phase.workers.stopAll(STOP_GRACE_MS, cause.kind === "settled");
    await this.ownOutput.close();
  }

  /** Ends the job in the background. If `end` itself throws, no other cause would end the job any more. */
  endSoon(cause: EndCause): void {
    const failed = (error: Error) => endAtAnyRate(this.deps, this.job, error);
    contain("a job's end", () => this.end(cause), failed);
  }

  /** It waits for its first worker. */
  get rests(): boolean {
    return this.job.queued_time !== null;
  }

  tick(): void {
    if (!this.checkTimeout()) this.phase.tick(performance.now());
  }

  private checkTimeout(): boolean {
    if (!this.deadline.isOver(performance.now())) return false;
    this.endSoon({ kind: "timed_out", timeoutS: this.job.timeout_s! });
    return true;
  }

  failOutput(error: Error): void {
    if (error instanceof FormerOwner) return this.unexpected(error);
    this.endSoon({ kind: "unexpected", reason: outputFailed(error) });
  }

  unexpected(error: Error): void {
    // Only a server that shuts down gives up its database. The next controller continues the job.
    if (error instanceof FormerOwner || unavailabilityOf(error)) return contain("a job", () => this.stop());
    const { job_id } = this.job;
    this.deps.log.error({ event: "job_failed_inside", job_id, err: error }, "a job failed: internal error");
    this.endSoon({ kind: "unexpected", reason: unexpected(error) });
  }
}
