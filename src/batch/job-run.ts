/**
 * One run of one job by its owner: enqueue, dispatch, finish. All causes of an end meet in `end`, which is the only
 * writer of the closing record here; a stop from outside wins or loses there like every other.
 */
import { timestamp } from "../base/clock.ts";
import type { Service } from "../base/service.ts";
import { INTERRUPTIONS_MAX, STOP_GRACE_MS } from "../contracts/limits.ts";
import { EnvironmentError } from "../engine/python-environment.ts";
import { openOwnFile } from "../object-store/file-store.ts";
import { selectFiles } from "../object-store/select-files.ts";
import type { Init, WorkerFault } from "../protocol/messages.ts";
import { suspects } from "./batch-records.ts";
import { BatchWorker } from "./batch-worker.ts";
import { Dispatcher } from "./dispatcher.ts";
import { type EnqueueCursor, EnqueueError, Enqueuer } from "./enqueuer.ts";
import { finishJob } from "./finish-job.ts";
import type { JobApi, JobDeps } from "./job-deps.ts";
import { type JobInput, jobInput, ownItemsFile } from "./job-input.ts";
import type { EndCause } from "./job-status.ts";
import { type JobRow, setRunning, setStartTime } from "./job-store.ts";
import { LeaseCursor } from "./lease-cursor.ts";
import { Settlements } from "./settlements.ts";
import { type StoredInput, storedInput } from "./stored-input.ts";

const TICK_MS = 250;

export class JobRun implements Service {
  /** Resolves when the job has ended, or this run was stopped without ending it. */
  readonly ended: Promise<void>;
  private resolveEnded: () => void = () => {};
  private readonly deps: JobDeps;
  private readonly job: JobRow;
  private readonly condemned: ReadonlySet<number>;
  private readonly stored: StoredInput;
  private readonly input: JobInput;
  private readonly workers = new Set<BatchWorker>();
  private readonly counts = { starting: 0, failed: 0 };
  private api: JobApi | undefined;
  private dispatcher: Dispatcher | undefined;
  private settlements: Settlements | undefined;
  private totalBatches: number | undefined;
  private slots = 1;
  private isEnding = false;
  private isCompleting = false;
  private ticker: NodeJS.Timeout | undefined;

  constructor(deps: JobDeps, job: JobRow, condemned: ReadonlySet<number>) {
    this.deps = deps;
    this.job = job;
    this.condemned = condemned;
    this.stored = storedInput(job);
    this.input = jobInput(deps.store, openOwnFile, ownItemsFile(deps.dataDir, job.job_id));
    this.totalBatches = job.total_batch_count ?? undefined;
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve;
    });
  }

  async start(): Promise<void> {
    this.ticker = setInterval(() => this.tick(), TICK_MS);
    this.run().catch((error: Error) => this.unexpected(error));
  }

  /** The server goes down, the job does not: running batches have the grace to finish, the rest costs no attempt. */
  async stop(): Promise<void> {
    if (this.isEnding) return this.ended;
    this.isEnding = true;
    clearInterval(this.ticker);
    await Promise.all([...this.workers].map((worker) => worker.stop(STOP_GRACE_MS)));
    this.dispatcher?.close();
    await this.settlements?.drain();
    await Promise.all([...this.workers].map((worker) => this.deps.forgetWorker(worker.identity.worker_id)));
    this.resolveEnded();
  }

  /** Stopped by DELETE or by the deletion of its API; false when it had ended otherwise. */
  async stopJob(): Promise<boolean> {
    return this.end({ kind: "stopped" });
  }

  workerCounts(): { initializing: number; running: number; pending: number; failed: number } {
    const all = [...this.workers];
    const running = all.filter((worker) => worker.state === "ready").length;
    const initializing =
      all.filter((worker) => worker.state === "initializing").length + this.counts.starting;
    return {
      initializing,
      running,
      failed: this.counts.failed,
      pending: Math.max(0, this.wantedWorkers() - initializing - running),
    };
  }

  private async run(): Promise<void> {
    const { deps, job } = this;
    await setStartTime(deps.db, job.job_id, deps.epoch, timestamp());
    this.api = await deps.findApi(job.api_name, job.api_id);
    this.slots = Math.max(1, Math.floor(deps.machineCpus / Math.max(0.01, this.api.cpus)));
    if (this.checkTimeout()) return;
    this.startMissingWorkers();
    if (job.status === "status_enqueuing" && !(await this.enqueue())) return;
    await this.dispatch();
  }

  /** False when the job ended meanwhile. */
  private async enqueue(): Promise<boolean> {
    const { deps, job, stored } = this;
    deps.jobLog(
      job.job_id,
      job.enqueued_batches === 0
        ? "started enqueuing batches"
        : `went on enqueuing after ${job.enqueued_batches} batches`,
    );
    const files = (after: EnqueueCursor | undefined) =>
      stored.kind === "items" ? ownFile(after) : selectFiles(deps.store, stored.store_paths, after);
    const enqueuer = new Enqueuer(deps.db, {
      jobId: job.job_id,
      epoch: deps.epoch,
      batchSize: stored.batch_size,
      files,
      input: this.input,
      mustBeObjects: stored.kind === "lines",
      cursor:
        job.enqueue_cursor_json === null ? undefined : (JSON.parse(job.enqueue_cursor_json) as EnqueueCursor),
      enqueuedBatches: job.enqueued_batches,
      isCancelled: () => this.isEnding,
      reach: deps.reach,
    });
    try {
      const total = await enqueuer.run();
      if (total === undefined || !(await setRunning(deps.db, job.job_id, deps.epoch, total))) return false;
      deps.reach("enqueued-after-commit");
      this.totalBatches = total;
      deps.jobLog(job.job_id, `enqueued ${total} batches`);
      return true;
    } catch (error) {
      await this.end({ kind: "enqueue_failed", reason: enqueueReason(error as Error) });
      return false;
    }
  }

  private async dispatch(): Promise<void> {
    const { deps, job } = this;
    const alone = await suspects(deps.db, job.job_id, INTERRUPTIONS_MAX);
    const cursor = new LeaseCursor(deps.db, job.job_id, this.input, this.stored.batch_size, alone);
    this.settlements = new Settlements(deps.db, job.succeeded + job.failed_batches, {
      jobId: job.job_id,
      epoch: deps.epoch,
      round: job.round,
      reach: deps.reach,
      onCommitted: () => this.dispatcher?.committed(),
      onError: (error) => this.unexpected(error),
    });
    this.dispatcher = new Dispatcher({
      cursor,
      settlements: this.settlements,
      totalBatches: this.totalBatches!,
      condemned: this.condemned,
      timeoutMs: this.api!.timeoutMs,
      onAllSettled: () => void this.complete(),
      onWorkersKeepDying: (reason) => void this.end({ kind: "worker_error", reason }),
      onInputError: (error) =>
        void this.end({
          kind: "enqueue_failed",
          reason: { code: "input_unreadable", message: error.message, hint: "submit the job again" },
        }),
    });
    for (const worker of this.workers) if (worker.state === "ready") this.dispatcher.addWorker(worker);
    this.startMissingWorkers();
  }

  /** More workers than batches are not started; what the machine has no room for waits. */
  private wantedWorkers(): number {
    const known = this.totalBatches ?? this.stored.batch_count ?? 1;
    const left = known - (this.settlements?.settledBatches ?? this.job.succeeded + this.job.failed_batches);
    return Math.max(1, Math.min(this.job.workers, left));
  }

  private startMissingWorkers(): void {
    const missing = Math.min(this.wantedWorkers(), this.slots) - this.workers.size - this.counts.starting;
    for (let i = 0; i < missing && !this.isEnding; i++) void this.startWorker();
  }

  private async startWorker(): Promise<void> {
    const { deps, job } = this;
    try {
      this.counts.starting++;
      const running = await deps
        .startWorker(job.api_name, job.api_id, job.job_id)
        .finally(() => this.counts.starting--);
      const worker = new BatchWorker(running, {
        onReady: (ready) => this.onReady(ready),
        onSetUpFailed: (failed, fault) => this.onSetUpFailed(failed, fault),
        onAck: (acking, ack) => this.dispatcher?.acked(acking, ack),
        onReleased: (_, batches) => this.dispatcher?.released(batches),
        onDeath: (dead, death) => {
          this.drop(dead);
          this.dispatcher?.died(dead, death);
          this.startMissingWorkers();
        },
      });
      this.workers.add(worker);
      if (this.isEnding) await worker.stop(STOP_GRACE_MS);
      else await worker.setUp(this.initMessage(), deps.epoch);
    } catch (error) {
      const code = error instanceof EnvironmentError ? "requirements_failed" : "worker_start_failed";
      await this.end({
        kind: "worker_error",
        reason: {
          code,
          message: (error as Error).message,
          hint: "correct it and deploy again; the job's log has the whole output",
        },
      });
    }
  }

  private initMessage(): Init {
    const { job } = this;
    const spec = {
      job_id: job.job_id,
      api_name: job.api_name,
      api_id: job.api_id,
      workers: job.workers,
      total_batch_count: this.totalBatches ?? null,
      config: JSON.parse(job.config_json) as unknown,
      created_time: job.created_time,
      round: job.round,
    };
    return { ...this.api!.init, job_config: job.config_json, job_spec: spec };
  }

  private onReady(worker: BatchWorker): void {
    this.dispatcher?.addWorker(worker);
  }

  private onSetUpFailed(worker: BatchWorker, fault: WorkerFault): void {
    this.counts.failed++;
    this.drop(worker);
    const message = `a worker could not be set up: ${fault.type}: ${fault.message}`;
    void this.end({
      kind: "worker_error",
      reason: {
        code: "set_up_failed",
        message,
        hint: "the job's log has the traceback; correct the predictor and deploy again",
      },
    });
  }

  private drop(worker: BatchWorker): void {
    this.workers.delete(worker);
    void this.deps.forgetWorker(worker.identity.worker_id);
  }

  /** All batches are settled: `on_job_complete` on one worker, once; then the end. */
  private async complete(): Promise<void> {
    if (this.isCompleting || this.isEnding) return;
    const worker = [...this.workers].find((candidate) => candidate.state === "ready");
    // Only a worker that is ready can tell whether there is a hook; one is on its way.
    if (worker === undefined) return this.startMissingWorkers();
    this.isCompleting = true;
    const fault = worker.hasOnJobComplete ? await worker.completeJob(this.job.round) : undefined;
    this.isCompleting = false;
    if (fault === "died") return;
    if (fault === undefined) await this.end({ kind: "settled" });
    else
      await this.end({
        kind: "worker_error",
        reason: {
          code: "on_job_complete_failed",
          message: `on_job_complete raised ${fault.type}: ${fault.message}`,
          hint: "the job's log has the traceback",
        },
      });
  }

  /** True when this cause won the race for the closing record. */
  private async end(cause: EndCause): Promise<boolean> {
    if (this.isEnding && cause.kind !== "stopped") return false;
    const wasEnding = this.isEnding;
    this.isEnding = true;
    clearInterval(this.ticker);
    this.dispatcher?.close();
    await this.settlements?.drain();
    const won = await finishJob(this.deps, this.job.job_id, cause);
    if (wasEnding) return won;
    const workers = [...this.workers];
    this.resolveEnded();
    await Promise.all(workers.map((worker) => worker.stop(STOP_GRACE_MS)));
    for (const worker of workers) this.drop(worker);
    return won;
  }

  private tick(): void {
    if (this.checkTimeout()) return;
    const timeoutMs = this.api?.timeoutMs;
    if (timeoutMs === undefined || this.dispatcher === undefined) return;
    for (const worker of this.dispatcher.overdue(performance.now(), timeoutMs)) worker.killForTimeout();
  }

  private checkTimeout(): boolean {
    const { timeout_s, created_time } = this.job;
    if (timeout_s === null || Date.now() < Date.parse(created_time) + timeout_s * 1000) return false;
    void this.end({ kind: "timed_out", timeoutS: timeout_s });
    return true;
  }

  private unexpected(error: Error): void {
    this.deps.log.error({ job_id: this.job.job_id, err: error }, "a job failed for a fault of ours");
    void this.end({
      kind: "unexpected",
      reason: {
        code: "unexpected_error",
        message: error.message,
        hint: "this is a fault of Quern; please report it with the server's log",
      },
    });
  }
}

async function* ownFile(after: EnqueueCursor | undefined): AsyncGenerator<{ path: string; entry: number }> {
  if (after === undefined || after.entry === 0) yield { path: "", entry: 0 };
}

function enqueueReason(error: Error) {
  if (error instanceof EnqueueError) return { code: error.code, message: error.message, hint: error.hint };
  return {
    code: "input_unreadable",
    message: `the input could not be read: ${error.message}`,
    hint: "see that the files are there and may be read, then submit again",
  };
}
