/**
 * The phase in which the input becomes batches. Workers start at the same time, so that they are ready when the batches
 * are.
 */
import { setTimeout } from "node:timers/promises";
import { contain } from "../base/boundary.ts";
import { COPIES } from "../base/files/leave-free.ts";
import { ENQUEUE_COMMIT_BYTES } from "../contracts/limits/jobs.ts";
import { workersOf } from "../engine/scheduler/claims.ts";
import { type EnqueueTurnEnd, enqueueJob, type KeptTurn } from "./enqueue/enqueue-job.ts";
import type { EnqueueTurns } from "./enqueue/enqueue-turns.ts";
import { EnqueuingDeaths, isSuspect } from "./enqueue/enqueuing-deaths.ts";
import type { JobApi } from "./job-deps.ts";
import type { Phase, PhaseLook, RunOfJob } from "./phase.ts";
import { enqueueFailed } from "./records/job-reasons.ts";
import { configText } from "./records/job-rows.ts";
import { setRunning } from "./records/owned-job.ts";
import type { StoredInput } from "./records/stored-input.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";
import { JobWorkers } from "./workers/job-workers.ts";
import type { WorkerDeath } from "./workers/worker-death.ts";
import { WorkerLosses } from "./workers/worker-losses.ts";
import { type WorkersOwner, wantedWorkers } from "./workers/workers-owner.ts";

/** After that long, a job whose input the disk has no space for tries again. */
const NO_SPACE_PAUSE_MS = 10_000;

export class Enqueuing implements Phase, WorkersOwner {
  readonly workers: JobWorkers;
  readonly totalBatches: number | undefined;
  readonly losses = new WorkerLosses();
  private readonly run: RunOfJob;
  private readonly turns: EnqueueTurns;
  private readonly deaths: EnqueuingDeaths;
  /** Known before all is enqueued if the items came with the submission. */
  private readonly expectedBatches: number | undefined;
  /** What it waits for in its turn. */
  private inputWait: string | undefined;
  /** Said once, however often it tries. */
  private isShortOfSpace = false;

  /** `turns`: the first one has begun. */
  constructor(
    run: RunOfJob,
    api: JobApi,
    turns: EnqueueTurns,
    { batch_count }: Pick<StoredInput, "batch_count">,
  ) {
    const { deps, job, startTime, diskWait } = run;
    const { job_id, api_name, api_id, priority } = job;
    this.run = run;
    this.turns = turns;
    this.deaths = new EnqueuingDeaths(deps.db, deps.epoch, job);
    this.totalBatches = job.total_batch_count ?? undefined;
    this.expectedBatches = this.totalBatches ?? batch_count;
    this.workers = new JobWorkers({
      ...{
        jobId: job_id,
        epoch: deps.epoch,
        account: deps.computeFor(job_id),
        openFiles: deps.openFiles,
        compute: api.compute,
        diskWait,
        log: deps.log,
      },
      by: workersOf(job_id, api_name, priority),
      start: (reservation) => deps.startWorker({ api_name, api_id, job_id }, reservation),
      forget: async (workerId) => {
        await run.spans.save();
        await deps.forgetWorker(workerId);
      },
      spans: run.spans,
      warm: api.reusesWorkers ? deps.warmWorkers.of({ api_name, api_id, compute: api.compute }) : undefined,
      takeOver: (process) => deps.takeOverWorker(process, job_id),
      init: async (total) => ({
        ...api.init,
        job_config: await configText(deps.db, job_id),
        job_spec: jobSpec(run.job, startTime, total),
        has_output: run.output !== undefined,
        needs_value_per_item: run.output !== undefined && run.job.isolates === 1,
      }),
      lifetime: api.lifetime,
      openRows: run.output?.openRows,
      jobLog: (line) => deps.jobLog(job_id, line),
      end: (cause) => run.endSoon(cause),
      onFault: (error) => run.unexpected(error),
    });
    this.workers.serve(this);
  }

  get wantedWorkers(): number {
    if (this.run.isEnding) return 0;
    const { workers, succeeded, failed_batches } = this.run.job;
    return wantedWorkers(workers, (this.expectedBatches ?? 1) - succeeded - failed_batches);
  }

  /** Enqueues the input. Resolves to the number of batches, all committed; undefined if the job ends instead. */
  async enqueue(): Promise<number | undefined> {
    const { deps, job } = this.run;
    const { job_id: jobId, enqueued_batches: before } = job;
    if (job.status !== "status_enqueuing") return job.total_batch_count!;
    deps.jobLog(
      jobId,
      before === 0 ? "started enqueuing batches" : `resumed enqueuing after ${before} batches`,
    );
    try {
      await this.deaths.turnBegins();
      const total = await this.enqueueInTurns();
      if (total === undefined || !(await setRunning(deps.db, jobId, deps.epoch, total))) return undefined;
      deps.reach("enqueued-after-commit");
      deps.jobLog(jobId, `enqueued ${total} batches`);
      return total;
    } catch (error) {
      // The listing of a job that is ending was cut off.
      if (this.run.isEnding) return undefined;
      this.run.endSoon({ kind: "enqueue_failed", reason: enqueueFailed(error as Error) });
      return undefined;
    }
  }

  /** Resolves to the number of batches; undefined if the job ends instead. */
  private async enqueueInTurns(): Promise<number | undefined> {
    const { deps, job, store, diskWait, input, over: signal } = this.run;
    const jobId = job.job_id;
    const own = {
      ...{ jobId, store, diskWait, input, signal },
      isCancelled: () => this.run.isEnding,
      isTurnOver: (hasProgress: boolean, isAwaited: boolean) => this.turns.isOver(hasProgress, isAwaited),
      onWait: (reason: string | undefined) => this.waitFor(reason),
    };
    for (let kept: KeptTurn | undefined; ; ) {
      const end = await enqueueJob({ ...deps, ...own, own: deps.items.writer(jobId, store), kept });
      if (end.kind === "enqueued") return end.total;
      if (end.kind === "cancelled" || !(await this.waitAfter(end))) return undefined;
      kept = end.kind === "turn_over" ? end.kept : undefined;
    }
  }

  /** Waits for the turn after one that ended so; false if the job ends before. */
  private async waitAfter(end: EnqueueTurnEnd): Promise<boolean> {
    const { deps, job } = this.run;
    if (end.kind === "no_space") return this.waitForSpace(end.reason);
    this.isShortOfSpace = false;
    deps.jobLog(job.job_id, "others may enqueue now: the job waits for its next turn");
    return this.nextTurn(end.kind !== "turn_over" || end.isFurther);
  }

  /** Others have its place meanwhile. False if the job ends before. */
  private async waitForSpace(reason: string): Promise<boolean> {
    const { deps, job, over: signal } = this.run;
    this.turns.end();
    await this.deaths.turnIsOver();
    if (!this.isShortOfSpace) deps.jobLog(job.job_id, `${reason}: the job waits for space`);
    this.isShortOfSpace = true;
    this.inputWait = reason;
    // A turn would read compressed files from the beginning again.
    do await setTimeout(NO_SPACE_PAUSE_MS, undefined, { signal }).catch(() => {});
    while (!signal.aborted && !(await this.hasSpace()));
    this.inputWait = undefined;
    return this.nextTurn(true);
  }

  private hasSpace(): Promise<boolean> {
    const { items } = this.run.deps;
    return items.admit(ENQUEUE_COMMIT_BYTES, COPIES).then(
      () => true,
      () => false,
    );
  }

  /** Waits for the next turn; false if the job ends before. */
  private async nextTurn(isFurther: boolean): Promise<boolean> {
    await this.deaths.turnIsOver();
    if (!(await this.turns.next(isFurther))) return false;
    await this.deaths.turnBegins();
    return true;
  }

  /** Other suspects need not wait for this one, whose store may be away. */
  private survive(): void {
    contain(
      "a job",
      () => {
        // Before anything is awaited: later, it might be the place of the next turn.
        if (isSuspect(this.run.job)) this.turns.end();
        return this.deaths.turnIsOver();
      },
      (error) => this.run.unexpected(error),
    );
  }

  private waitFor(reason: string | undefined): void {
    this.inputWait = reason;
    if (reason !== undefined) this.run.deps.jobLog(this.run.job.job_id, reason);
  }

  /** A ready worker waits for batches. */
  ready(_: BatchWorker): void {
    this.run.hasWorker();
  }

  /** No batch can have been in hand yet. */
  died(_: BatchWorker, { exit, isInterruption }: WorkerDeath): void {
    if (isInterruption) return;
    const cause = this.losses.diedIdle(exit);
    if (cause !== undefined) this.run.endSoon(cause);
  }

  look(): PhaseLook {
    return { name: "enqueuing", workers: this.workers.all };
  }

  waiting(withNames: boolean): string | undefined {
    return this.turns.describeWaiting() ?? this.inputWait ?? this.workers.describeWaiting(withNames);
  }

  tick(nowMs: number): void {
    this.workers.tick(nowMs);
    if (this.workers.leaving.mayBeAny)
      for (const worker of this.workers.ready()) if (worker.isAskedToYield) this.workers.letGo(worker);
    if (this.deaths.isSurvived(nowMs)) this.survive();
  }

  /** No worker has a batch yet. */
  async drain(): Promise<void> {}

  async close(): Promise<void> {}

  async leave(): Promise<void> {
    // Without a database it stays counted, which is harmless.
    await this.deaths.turnIsOver().catch(() => {});
  }
}

/** The `job_spec` of a predictor that declares it. The worker adds `config` from the text in `job_config`. */
function jobSpec(job: RunOfJob["job"], start_time: string, total: number | undefined) {
  const { job_id, api_name, api_id, workers, created_time, round } = job;
  const total_batch_count = total ?? null;
  return { job_id, api_name, api_id, workers, total_batch_count, created_time, start_time, round };
}
