/** The phase in which workers get batches, until all are settled; then `on_job_complete`, and the end. */
import { contain } from "../base/boundary.ts";
import { CREDIT_BATCHES_MAX, INTERRUPTIONS_MAX } from "../contracts/limits/jobs.ts";
import { parseQueueName } from "../contracts/queues.ts";
import { afterUnsettled } from "../database/segment-rows.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatch/dispatcher.ts";
import { LeaseCursor } from "./dispatch/lease-cursor.ts";
import type { FormerDeaths } from "./dispatch/next-batches.ts";
import { Settlements } from "./dispatch/settlements.ts";
import type { Enqueuing } from "./enqueuing.ts";
import { makeLetter } from "./letters/letters.ts";
import type { Phase, RunOfJob } from "./phase.ts";
import { chargedAttempts } from "./records/batch-rows.ts";
import { condemned, suspects } from "./records/interrupted-batches.ts";
import { completionFailed, inputLost } from "./records/job-reasons.ts";
import type { JobRow } from "./records/job-rows.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";
import type { JobWorkers } from "./workers/job-workers.ts";
import type { WorkerDeath } from "./workers/worker-death.ts";
import { type WorkersOwner, wantedWorkers } from "./workers/workers-owner.ts";

/** The database's records about the batches that are left. */
type Left = FormerDeaths & Pick<DispatcherOptions, "attempts">;

export interface DispatchPlan {
  totalBatches: number;
  batchSize: number;
  /** `predictor.timeout` in milliseconds; undefined is none. */
  timeoutMs: number | undefined;
}

export class Dispatching implements Phase, WorkersOwner {
  readonly workers: JobWorkers;
  readonly totalBatches: number;
  private readonly run: RunOfJob;
  private readonly timeoutMs: number | undefined;
  private readonly cursor: LeaseCursor;
  private readonly settlements: Settlements;
  private readonly dispatcher: Dispatcher;
  private isCompleting = false;
  private inputClosed: Promise<void> = Promise.resolve();

  constructor(run: RunOfJob, { workers, losses }: Enqueuing, plan: DispatchPlan, left: Left) {
    const { deps, job } = run;
    const { totalBatches, batchSize, timeoutMs } = plan;
    this.run = run;
    this.workers = workers;
    this.totalBatches = totalBatches;
    this.timeoutMs = timeoutMs;
    this.settlements = new Settlements(deps.db, job.succeeded + job.failed_batches, {
      ...{ jobId: job.job_id, epoch: deps.epoch, round: job.round, reach: deps.reach },
      onLetters: () => isForSqs(job) && deps.onLetters({ queue: job.dead_letter_queue!, api: job.api_name }),
      onCommitted: () => this.dispatcher.committed(),
      onError: (error) => run.unexpected(error),
    });
    this.cursor = new LeaseCursor(deps.db, job.job_id, run.input, batchSize);
    this.dispatcher = new Dispatcher({
      ...{ cursor: this.cursor, settlements: this.settlements, totalBatches, ...left },
      ...{ solitude: deps.solitude, losses, maxAttempts: job.max_receive_count, timeoutMs },
      letterOf: letterOf(job),
      onAllSettled: () => this.completeSoon(),
      onWorkersKeepDying: (cause) => run.endSoon(cause),
      onInputError: (error) => run.endSoon({ kind: "enqueue_failed", reason: inputLost(error) }),
      onFault: (error) => run.unexpected(error),
    });
  }

  /** Reads what is left to do. */
  static async begin(run: RunOfJob, before: Enqueuing, plan: DispatchPlan): Promise<Dispatching> {
    const { db } = run.deps;
    const { job_id } = run.job;
    return new Dispatching(run, before, plan, {
      condemned: await condemned(db, job_id),
      alone: await suspects(db, job_id, INTERRUPTIONS_MAX),
      recordedBefore: await recordedBefore(run),
      attempts: await chargedAttempts(db, job_id),
    });
  }

  get wantedWorkers(): number {
    if (this.run.isEnding) return 0;
    return wantedWorkers(this.run.job.workers, this.totalBatches - this.settlements.settledBatches);
  }

  /** Takes over the workers; those that are ready get batches at once. */
  start(): void {
    this.workers.serve(this);
    for (const worker of this.workers.ready()) this.ready(worker);
    this.workers.startMissing();
  }

  ready(worker: BatchWorker): void {
    worker.tellTotal(this.totalBatches);
    this.dispatcher.addWorker(worker);
  }

  died(worker: BatchWorker, death: WorkerDeath): void {
    this.dispatcher.died(worker, death);
  }

  tick(nowMs: number): void {
    this.workers.logWaiting(nowMs);
    if (this.timeoutMs === undefined) return;
    for (const worker of this.dispatcher.overdue(nowMs, this.timeoutMs)) worker.killForTimeout();
  }

  close(): Promise<void> {
    this.dispatcher.close();
    this.inputClosed = this.cursor.close();
    contain("the input of a job", () => this.inputClosed);
    return this.settlements.drain();
  }

  async leave(): Promise<void> {
    await this.close();
    await this.inputClosed;
  }

  private completeSoon(): void {
    contain(
      "a job",
      () => this.complete(),
      (error) => this.run.unexpected(error),
    );
  }

  /** All batches are settled: `on_job_complete` on one worker, once; then the end. */
  private async complete(): Promise<void> {
    if (this.isCompleting || this.run.isEnding) return;
    const [worker] = this.workers.ready();
    // Only a ready worker knows whether there is a hook; one is being started.
    if (worker === undefined) return this.workers.startMissing();
    this.isCompleting = true;
    const fault = worker.hasOnJobComplete ? await worker.completeJob(this.run.job.round) : undefined;
    this.isCompleting = false;
    if (fault === "died") return;
    this.run.endSoon(
      fault === undefined ? { kind: "settled" } : { kind: "worker_error", reason: completionFailed(fault) },
    );
  }
}

/**
 * After the machine went down, the batches in hand are unknown, because notes are not synced with every batch. They are
 * among the first unsettled batches. Twice the credit, because as many may have been released and not yet leased again.
 */
async function recordedBefore({ deps, job, lostWorkers }: RunOfJob): Promise<number> {
  const unknown = 2 * CREDIT_BATCHES_MAX * lostWorkers;
  return unknown === 0 ? 0 : afterUnsettled(deps.db, job.job_id, unknown);
}

/** Messages for Quern's own queues are already in place. */
function isForSqs({ dead_letter_queue }: JobRow): boolean {
  return parseQueueName(dead_letter_queue ?? "")?.kind === "sqs";
}

function letterOf({
  job_id,
  api_name,
  round,
  dead_letter_queue: queue,
}: JobRow): DispatcherOptions["letterOf"] {
  if (queue === null) return undefined;
  return ({ batch_index, fault }, receiveCount, body) =>
    makeLetter({ queue, api_name, job_id, round, batch_index, receiveCount, body, error: fault });
}
