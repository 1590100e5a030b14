/**
 * One run of one job by its owner: enqueue, dispatch, finish. All causes of an end meet in `end`, which is the only
 * writer of the closing record here; a stop from outside wins or loses there like every other.
 */
import { contain, containAll } from "../base/boundary.ts";
import { timestamp, wallMs } from "../base/clock.ts";
import { describeShortage, type RoomWait } from "../base/disk-full.ts";
import type { Service } from "../base/service.ts";
import type { WorkerCounts } from "../contracts/jobs.ts";
import {
  CREDIT_BATCHES_MAX,
  IDLE_DEATHS_MAX,
  INTERRUPTIONS_MAX,
  STOP_GRACE_MS,
} from "../contracts/limits.ts";
import { parseQueueName } from "../contracts/queues.ts";
import { patientDatabase } from "../database/patient-database.ts";
import { afterUnsettled } from "../database/segment-store.ts";
import type { WorkerExit } from "../engine/engine.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { chargedAttempts, condemned, suspects } from "./batch-records.ts";
import type { BatchWorker, BatchWorkerEvents, WorkerDeath } from "./batch-worker.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { enqueueJob } from "./enqueue-job.ts";
import { finishJob } from "./finish-job.ts";
import { JobDeadline } from "./job-deadline.ts";
import type { JobApi, JobDeps } from "./job-deps.ts";
import { type JobInput, jobInput } from "./job-input.ts";
import {
  completionFailed,
  enqueueFailed,
  inputLost,
  setUpFailed,
  startFailed,
  unexpected,
} from "./job-reasons.ts";
import type { EndCause } from "./job-status.ts";
import { configText, type JobRow, setRunning, setStartTime } from "./job-store.ts";
import { JobWorkers } from "./job-workers.ts";
import { LeaseCursor } from "./lease-cursor.ts";
import { makeLetter } from "./letters.ts";
import { ownFilePath } from "./own-file.ts";
import { Settlements } from "./settlements.ts";
import { type StoredInput, storedInput } from "./stored-input.ts";
import { IDLE_DEATHS, keepDying } from "./worker-death.ts";

const TICK_MS = 250;
/** Workers that have waited this long for compute are worth a line in the log. */
const WAITING_TOLD_MS = 2_000;

export class JobRun implements Service {
  /** Resolves when the job has ended, or this run was stopped without ending it, and its workers are gone. */
  readonly ended: Promise<void>;
  private resolveEnded: () => void = () => {};
  private readonly deps: JobDeps;
  private readonly job: JobRow;
  private readonly lostWorkers: number;
  /** What is kept of the input: where it is selected by 10 MB of paths, those are not. */
  private stored: Pick<StoredInput, "batch_size" | "batch_count"> | undefined;
  /** Aborted when nobody waits for the input any more. */
  private readonly over = new AbortController();
  /** Aborted when the server goes down: what the disk has no room for is lost, and done again. */
  private readonly gone = new AbortController();
  private readonly room: RoomWait;
  private readonly deadline: JobDeadline;
  private readonly store: ObjectStore;
  private readonly input: JobInput;
  private readonly workers: JobWorkers;
  private api: JobApi | undefined;
  private cursor: LeaseCursor | undefined;
  private dispatcher: Dispatcher | undefined;
  private settlements: Settlements | undefined;
  private totalBatches: number | undefined;
  private readonly startTime: string;
  private idleDeaths = 0;
  private isEnding = false;
  private isCompleting = false;
  private hasToldOfWaiting = false;
  private ticker: NodeJS.Timeout | undefined;

  /** `lostWorkers`: how many the job had when the machine went down. */
  constructor(deps: JobDeps, job: JobRow, lostWorkers: number) {
    this.room = {
      onWait: (error) =>
        deps.jobLog(job.job_id, `${describeShortage(error)}: the job waits until there is room`),
      signal: this.gone.signal,
    };
    this.deps = { ...deps, db: patientDatabase(deps.db, this.room) };
    this.job = job;
    this.deadline = new JobDeadline(job.timeout_s, job.round_started_time ?? job.created_time, {
      wallMs: wallMs(),
      monotonicMs: performance.now(),
    });
    this.lostWorkers = lostWorkers;
    this.store = new PatientStore(deps.store, {
      onWait: (error, pauseMs) => deps.jobLog(job.job_id, `${error.message}; trying again in ${pauseMs} ms`),
      signal: this.over.signal,
    });
    this.input = jobInput(this.store, ownFilePath(deps.dataDir, job.job_id), this.room);
    this.totalBatches = job.total_batch_count ?? undefined;
    this.startTime = job.start_time ?? timestamp();
    this.workers = new JobWorkers({
      epoch: deps.epoch,
      account: deps.account,
      holder: `job ${job.job_id} of ${job.api_name}`,
      room: this.room,
      need: () => this.api!.compute,
      start: (gpus) => deps.startWorker(job.api_name, job.api_id, job.job_id, gpus),
      forget: deps.forgetWorker,
      init: async () => ({
        ...this.api!.init,
        job_config: await configText(deps.db, job.job_id),
        job_spec: this.jobSpec(),
      }),
      events: containAll("a worker of a job", this.workerEvents(), (error) => this.unexpected(error)),
      onStartFailed: (error) => this.endSoon({ kind: "worker_error", reason: startFailed(error) }),
    });
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve;
    });
  }

  async start(): Promise<void> {
    this.ticker = setInterval(() => this.inside(() => this.tick()), TICK_MS);
    this.inside(() => this.run());
  }

  /** What the job's own work throws ends the job, and nothing else. */
  private inside(work: () => unknown): void {
    contain("a job", work, (error) => this.unexpected(error));
  }

  /** The server goes down, the job does not: running batches have the grace to finish, the rest costs no attempt. */
  async stop(): Promise<void> {
    if (this.isEnding) return this.ended;
    this.isEnding = true;
    clearInterval(this.ticker);
    this.over.abort();
    this.gone.abort();
    try {
      await this.workers.stopAll(STOP_GRACE_MS);
      this.dispatcher?.close();
      await this.cursor?.close();
      await this.settlements?.drain();
    } finally {
      this.resolveEnded();
    }
  }

  /** Stopped by DELETE or by the deletion of its API; false when it had ended otherwise. */
  async stopJob(): Promise<boolean> {
    return this.end({ kind: "stopped" });
  }

  waiting(): string | undefined {
    return this.workers.describeWaiting();
  }

  workerCounts(): WorkerCounts {
    return this.workers.counts(performance.now());
  }

  private async run(): Promise<void> {
    const { deps, job } = this;
    await setStartTime(deps.db, job.job_id, deps.epoch, this.startTime);
    const { batch_size, batch_count } = await storedInput(deps.db, job.job_id);
    this.stored = { batch_size, batch_count };
    this.api = await deps.findApi(job.api_name, job.api_id);
    if (this.checkTimeout()) return;
    this.startMissingWorkers();
    if (job.status === "status_enqueuing" && !(await this.enqueue())) return;
    await this.dispatch();
  }

  /** False when the job ended meanwhile. */
  private async enqueue(): Promise<boolean> {
    const { deps, job } = this;
    const { job_id, enqueued_batches: before } = job;
    deps.jobLog(
      job_id,
      before === 0 ? "started enqueuing batches" : `went on enqueuing after ${before} batches`,
    );
    try {
      const total = await enqueueJob({
        ...deps,
        job,
        jobId: job_id,
        store: this.store,
        room: this.room,
        input: this.input,
        ownFile: ownFilePath(deps.dataDir, job_id),
        isCancelled: () => this.isEnding,
      });
      if (total === undefined || !(await setRunning(deps.db, job_id, deps.epoch, total))) return false;
      deps.reach("enqueued-after-commit");
      this.totalBatches = total;
      deps.jobLog(job_id, `enqueued ${total} batches`);
      return true;
    } catch (error) {
      this.endSoon({ kind: "enqueue_failed", reason: enqueueFailed(error as Error) });
      return false;
    }
  }

  private async dispatch(): Promise<void> {
    const { deps, job } = this;
    this.settlements = new Settlements(deps.db, job.succeeded + job.failed_batches, {
      jobId: job.job_id,
      epoch: deps.epoch,
      round: job.round,
      reach: deps.reach,
      onLetters: () => this.sendLetters(),
      onCommitted: () => this.dispatcher?.committed(),
      onError: (error) => this.unexpected(error),
    });
    this.cursor = new LeaseCursor(deps.db, job.job_id, this.input, this.stored!.batch_size);
    this.dispatcher = new Dispatcher({
      cursor: this.cursor,
      settlements: this.settlements,
      totalBatches: this.totalBatches!,
      condemned: await condemned(deps.db, job.job_id),
      alone: await suspects(deps.db, job.job_id, INTERRUPTIONS_MAX),
      recordedBefore: await this.recordedBefore(),
      solitude: deps.solitude,
      idleDeaths: this.idleDeaths,
      maxAttempts: job.max_receive_count,
      attempts: await chargedAttempts(deps.db, job.job_id),
      letterOf: this.letterOf(),
      timeoutMs: this.api!.timeoutMs,
      onAllSettled: () => this.inside(() => this.complete()),
      onWorkersKeepDying: (kind, reason) => this.endSoon({ kind, reason }),
      onInputError: (error) => this.endSoon({ kind: "enqueue_failed", reason: inputLost(error) }),
      onFault: (error) => this.unexpected(error),
    });
    for (const worker of this.workers.ready()) this.join(worker);
    this.startMissingWorkers();
  }

  /** A worker that is ready gets batches, once all are enqueued. */
  private join(worker: BatchWorker): void {
    if (this.dispatcher === undefined) return;
    worker.tellTotal(this.totalBatches!);
    this.dispatcher.addWorker(worker);
  }

  /**
   * After the machine went down nobody knows what was in hand: notes are not synced with every batch. It was one of the first
   * batches that are not settled. Twice the credit, because as many may have been released and not yet leased again.
   */
  private async recordedBefore(): Promise<number> {
    const unknown = 2 * CREDIT_BATCHES_MAX * this.lostWorkers;
    return unknown === 0 ? 0 : afterUnsettled(this.deps.db, this.job.job_id, unknown);
  }

  /** Those of Quern's own queues are where they belong already. */
  private sendLetters(): void {
    const name = parseQueueName(this.job.dead_letter_queue ?? "");
    if (name?.kind === "sqs") this.deps.onLetters();
  }

  private letterOf(): DispatcherOptions["letterOf"] {
    const { job_id, api_name, round, dead_letter_queue: queue } = this.job;
    if (queue === null) return undefined;
    return ({ batch_index, fault }, receiveCount, body) =>
      makeLetter({ queue, api_name, job_id, round, batch_index, receiveCount, body, error: fault });
  }

  private workerEvents(): BatchWorkerEvents {
    return {
      onFault: (error) => this.unexpected(error),
      onReady: (worker) => this.join(worker),
      onSetUpFailed: (_, fault) => {
        const kind = fault.evidence?.out_of_memory === undefined ? "worker_error" : "worker_oom";
        this.endSoon({ kind, reason: setUpFailed(fault) });
      },
      onNoRoom: () => this.startMissingWorkers(),
      onAck: (worker, ack) => this.dispatcher?.acked(worker, ack),
      onReleased: (_, batches) => this.dispatcher?.released(batches),
      onDeath: (worker, death) => {
        const { worker_id } = worker.identity;
        if (!this.isEnding) this.logDeath(worker_id, death);
        if (this.dispatcher === undefined) this.diedWhileEnqueuing(death.exit);
        else this.dispatcher.died(worker, death);
        this.startMissingWorkers();
      },
    };
  }

  private logDeath(worker_id: string, { exit, broken }: WorkerDeath): void {
    const { log, jobLog } = this.deps;
    const { job_id } = this.job;
    if (broken === undefined) return jobLog(job_id, `worker ${worker_id} ${describeExit(exit)}`);
    log.error({ job_id, worker_id, broken }, "a worker broke the protocol and was killed");
    jobLog(job_id, `worker ${worker_id} broke the protocol and was killed: ${broken}`);
  }

  /** There is no batch yet that it could have had in hand. */
  private diedWhileEnqueuing(exit: WorkerExit): void {
    if (++this.idleDeaths < IDLE_DEATHS_MAX) return;
    const kind = exit.outOfMemory === undefined ? "worker_error" : "worker_oom";
    this.endSoon({ kind, reason: keepDying(exit, IDLE_DEATHS) });
  }

  /** More workers than batches are not started. */
  private wantedWorkers(): number {
    const known = this.totalBatches ?? this.stored?.batch_count ?? 1;
    const left = known - (this.settlements?.settledBatches ?? this.job.succeeded + this.job.failed_batches);
    return Math.max(1, Math.min(this.job.workers, left));
  }

  private startMissingWorkers(): void {
    if (!this.isEnding) this.workers.keepAt(this.wantedWorkers());
  }

  /** What a predictor that declares `job_spec` is given. `config` is added by the worker, from the text in `job_config`. */
  private jobSpec(): Record<string, unknown> {
    const { job_id, api_name, api_id, workers, created_time, round } = this.job;
    const total_batch_count = this.totalBatches ?? null;
    const start_time = this.startTime;
    return { job_id, api_name, api_id, workers, total_batch_count, created_time, start_time, round };
  }

  /** All batches are settled: `on_job_complete` on one worker, once; then the end. */
  private async complete(): Promise<void> {
    if (this.isCompleting || this.isEnding) return;
    const [worker] = this.workers.ready();
    // Only a worker that is ready can tell whether there is a hook; one is on its way.
    if (worker === undefined) return this.startMissingWorkers();
    this.isCompleting = true;
    const fault = worker.hasOnJobComplete ? await worker.completeJob(this.job.round) : undefined;
    this.isCompleting = false;
    if (fault === "died") return;
    this.endSoon(
      fault === undefined ? { kind: "settled" } : { kind: "worker_error", reason: completionFailed(fault) },
    );
  }

  /** True when this cause won the race for the closing record. Workers leave behind it. */
  private async end(cause: EndCause): Promise<boolean> {
    if (this.isEnding && cause.kind !== "stopped") return false;
    const isFirst = !this.isEnding;
    this.isEnding = true;
    clearInterval(this.ticker);
    this.over.abort();
    try {
      this.dispatcher?.close();
      contain("the input of a job", () => this.cursor?.close());
      await this.settlements?.drain();
      return await finishJob(this.deps, this.job.job_id, cause);
    } finally {
      if (isFirst)
        contain("a job's end", () => this.workers.stopAll(STOP_GRACE_MS).finally(this.resolveEnded));
    }
  }

  /** Where the end itself throws, no other cause would end the job any more. */
  private endSoon(cause: EndCause): void {
    contain(
      "a job's end",
      () => this.end(cause),
      (error) => this.endAtAnyRate(error),
    );
  }

  /** The end itself has failed: recorded with nothing but that. Where that fails too, the next start tries again. */
  private endAtAnyRate(error: Error): void {
    const { job_id } = this.job;
    this.deps.log.error({ job_id, err: error }, "a job could not be ended");
    contain("a job's end", () =>
      finishJob(this.deps, job_id, { kind: "unexpected", reason: unexpected(error) }),
    );
  }

  private tick(): void {
    if (this.checkTimeout()) return;
    this.tellOfWaiting();
    const timeoutMs = this.api?.timeoutMs;
    if (timeoutMs === undefined || this.dispatcher === undefined) return;
    for (const worker of this.dispatcher.overdue(performance.now(), timeoutMs)) worker.killForTimeout();
  }

  /** Says once, in the job's log, what its workers wait for. */
  private tellOfWaiting(): void {
    const waiting = this.workers.waiting(performance.now() - WAITING_TOLD_MS);
    if (waiting === 0 || this.hasToldOfWaiting || this.api === undefined) return;
    this.hasToldOfWaiting = true;
    const account = this.deps.account.describe(this.api.compute);
    this.deps.jobLog(
      this.job.job_id,
      `${waiting} of ${this.wantedWorkers()} workers wait for compute: ${account}`,
    );
  }

  private checkTimeout(): boolean {
    if (!this.deadline.isOver(performance.now())) return false;
    this.endSoon({ kind: "timed_out", timeoutS: this.job.timeout_s! });
    return true;
  }

  private unexpected(error: Error): void {
    this.deps.log.error({ job_id: this.job.job_id, err: error }, "a job failed for a fault of ours");
    this.endSoon({ kind: "unexpected", reason: unexpected(error) });
  }
}
