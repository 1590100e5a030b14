/** The phase in which workers get batches, until all are settled; then `on_job_complete`, and the end. */
import { contain } from "../base/boundary.ts";
import { FAILURES } from "../base/files/leave-free.ts";
import { CREDIT_BATCHES_MAX, INTERRUPTIONS_MAX } from "../contracts/limits/jobs.ts";
import { parseQueueName } from "../contracts/queues.ts";
import type { Database } from "../database/database.ts";
import { afterUnsettled, isSettled, segmentsWithSettled } from "../database/segment-rows.ts";
import { admitRowsOf } from "./admit.ts";
import { Completion } from "./completion.ts";
import { admitFailures } from "./dispatch/admit-failures.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatch/dispatcher.ts";
import { ErrorBudget } from "./dispatch/error-budget.ts";
import { Isolation, type IsolationOptions } from "./dispatch/isolation.ts";
import { LeaseCursor } from "./dispatch/lease-cursor.ts";
import type { FormerDeaths } from "./dispatch/next-batches.ts";
import { Settlements } from "./dispatch/settlements.ts";
import type { Enqueuing } from "./enqueuing.ts";
import { filesOfParts } from "./isolate/parts-of-job.ts";
import { makeLetter } from "./letters/letters.ts";
import { reopenLostParts } from "./lost-rows/lost-parts.ts";
import type { Phase, PhaseLook, RunOfJob } from "./phase.ts";
import { chargedAttempts } from "./records/batch-rows.ts";
import { condemned, suspects } from "./records/interrupted-batches.ts";
import { inputLost } from "./records/job-reasons.ts";
import type { JobRow } from "./records/job-rows.ts";
import type { StoredInput } from "./records/stored-input.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";
import type { JobWorkers } from "./workers/job-workers.ts";
import type { WorkerDeath } from "./workers/worker-death.ts";
import { type WorkersOwner, wantedWorkers } from "./workers/workers-owner.ts";

/** The database's records about the batches that are left. */
type Left = FormerDeaths & Pick<DispatcherOptions, "attempts">;

const SEGMENTS_A_PAGE = 64;

export interface DispatchPlan {
  totalBatches: number;
  batchSize: number;
  kind: StoredInput["kind"];
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
  private readonly completion: Completion;
  private inputClosed: Promise<void> = Promise.resolve();

  constructor(run: RunOfJob, { workers, losses }: Enqueuing, plan: DispatchPlan, left: Left) {
    const { deps, job } = run;
    const admit = admitRowsOf(run);
    const { totalBatches, batchSize, timeoutMs } = plan;
    this.run = run;
    this.workers = workers;
    this.totalBatches = totalBatches;
    this.timeoutMs = timeoutMs;
    this.settlements = new Settlements(deps.db, job.succeeded + job.failed_batches, {
      ...{ jobId: job.job_id, epoch: deps.epoch, round: job.round, reach: deps.reach },
      onLetters: () => isForSqs(job) && deps.onLetters({ queue: job.dead_letter_queue!, api: job.api_name }),
      onCommitted: () => {
        this.dispatcher.committed();
        this.letLeave();
      },
      onError: (error) => run.unexpected(error),
      output: run.output,
      admit: admitFailures((bytes) => admit(bytes, FAILURES)),
    });
    this.completion = new Completion(run, workers);
    const errors = new ErrorBudget((line) => deps.jobLog(job.job_id, line));
    const isolation =
      job.isolates === 1
        ? new Isolation({
            ...{ db: deps.db, jobId: job.job_id, settlements: this.settlements, kind: plan.kind, batchSize },
            ...{ errors, letterOf: letterOfItems(job) },
          })
        : undefined;
    this.cursor = new LeaseCursor(deps.db, job.job_id, run.input, batchSize, isolation);
    this.dispatcher = new Dispatcher({
      isolation,
      ...{ cursor: this.cursor, settlements: this.settlements, totalBatches, ...left },
      ...{ solitude: deps.solitude, losses, maxAttempts: job.max_receive_count, timeoutMs },
      ...{ errors, letterOf: letterOf(job) },
      onAllSettled: () => this.completion.soon(),
      onWorkersKeepDying: (cause) => run.endSoon(cause),
      onInputError: (error) => run.endSoon({ kind: "enqueue_failed", reason: inputLost(error) }),
      onFault: (error) => run.unexpected(error),
    });
  }

  /** Reads what is left to do. */
  static async begin(run: RunOfJob, before: Enqueuing, plan: DispatchPlan): Promise<Dispatching> {
    const { db } = run.deps;
    const { job_id } = run.job;
    const kept = run.job.isolates === 1 ? await filesOfParts(db, job_id) : [];
    await reopenLostParts(db, job_id, (await run.output?.lost(kept)) ?? []);
    await run.output?.begin(plan.totalBatches, (settled) => eachSettled(db, job_id, settled), kept);
    // No batch of a job that this run has enqueued was at a worker before.
    const left = run.job.status === "status_enqueuing" ? nothingBefore() : await leftOf(run);
    return new Dispatching(run, before, plan, left);
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
    this.run.hasWorker();
    worker.tellTotal(this.totalBatches);
    this.dispatcher.addWorker(worker);
  }

  died(worker: BatchWorker, death: WorkerDeath): void {
    this.dispatcher.died(worker, death);
  }

  waiting(withNames: boolean): string | undefined {
    return this.workers.describeWaiting(withNames);
  }

  look(nowMs: number): PhaseLook {
    const pace = this.cursor.pace(nowMs);
    const input = { ...pace, isExhausted: this.cursor.isExhausted && !pace.isReading };
    return { name: "dispatching", workers: this.workers.all, input };
  }

  /** The last workers stay for `on_job_complete`. */
  private letLeave(): void {
    const isLast = this.settlements.settledBatches >= this.totalBatches;
    if (this.run.isEnding || isLast || !this.workers.leaving.mayBeAny) return;
    for (const worker of this.dispatcher.takeLeaving()) this.workers.letGo(worker);
  }

  tick(nowMs: number): void {
    this.workers.tick(nowMs);
    this.letLeave();
    // While the job waits for the disk, its workers may have to wait as well.
    if (this.timeoutMs === undefined || this.run.diskWait.waiting?.size) return;
    for (const worker of this.dispatcher.overdue(nowMs, this.timeoutMs)) worker.killForTimeout();
  }

  drain(): Promise<void> {
    return this.workers.drain();
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
}

function nothingBefore(): Left {
  return { condemned: new Set(), alone: new Set(), recordedBefore: 0, attempts: new Map() };
}

async function leftOf(run: RunOfJob): Promise<Left> {
  const { db } = run.deps;
  const { job_id } = run.job;
  return {
    condemned: await condemned(db, job_id),
    alone: await suspects(db, job_id, INTERRUPTIONS_MAX),
    recordedBefore: await recordedBefore(run),
    attempts: await chargedAttempts(db, job_id),
  };
}

/** Calls `settled` with each settled batch of the job. */
async function eachSettled(
  db: Database,
  jobId: string,
  settled: (batchIndex: number) => void,
): Promise<void> {
  for (let from = 0; ; ) {
    const segments = await segmentsWithSettled(db, jobId, from, SEGMENTS_A_PAGE);
    for (const segment of segments)
      for (let batch = segment.first_batch; batch < segment.first_batch + segment.batch_count; batch++)
        if (isSettled(segment, batch)) settled(batch);
    const last = segments[segments.length - 1];
    if (last === undefined) return;
    from = last.first_batch + 1;
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

function letterOfItems({
  job_id,
  api_name,
  round,
  dead_letter_queue: queue,
}: JobRow): IsolationOptions["letterOf"] {
  if (queue === null) return undefined;
  return (batch_index, { first, attempts, fault, source }, body) =>
    makeLetter({
      ...{ queue, api_name, job_id, round, batch_index, receiveCount: attempts, body, error: fault },
      items: { first, source },
    });
}
