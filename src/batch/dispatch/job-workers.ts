/**
 * The workers of one job: starts as many as are wanted and fit the machine, replaces dead ones, and stops all at the
 * end.
 */
import { contain, containAll } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { type DiskWait, whenDiskHasSpace } from "../../base/disk-full.ts";
import type { Log } from "../../base/log.ts";
import type { WorkerCounts } from "../../contracts/jobs.ts";
import { STALLED_AFTER_MS } from "../../contracts/limits/jobs.ts";
import type { Ask, Compute, ComputeAccount, Reservation } from "../../engine/compute-account.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import type { Init, WorkerFault } from "../../protocol/messages.ts";
import { setUpFailed, startFailed } from "../records/job-reasons.ts";
import type { EndCause } from "../records/job-status.ts";
import { BatchWorker, type BatchWorkerEvents, type WorkerDeath } from "./batch-worker.ts";

const START_AGAIN_MS = 1_000;
const NO_SPACE_FOR_SOCKET = { code: "ENOSPC" };

/** Workers that wait longer than this for compute are logged once. */
const WAITING_LOGGED_MS = 2_000;

/** The phase of the job that the workers serve. */
export interface WorkersOwner {
  readonly wantedWorkers: number;
  /** Known once all batches are enqueued. */
  readonly totalBatches: number | undefined;
  ready(worker: BatchWorker): void;
  /** A ready worker died. It is replaced. */
  died(worker: BatchWorker, death: WorkerDeath): void;
}

const NO_OWNER: WorkersOwner = { wantedWorkers: 0, totalBatches: undefined, ready() {}, died() {} };

export interface JobWorkersOptions {
  jobId: string;
  epoch: number;
  account: ComputeAccount;
  /** How to wait if the disk has no space for a worker's log. */
  diskWait: DiskWait;
  /** Names the job to others that wait for compute. */
  holder: string;
  /** The compute that one worker reserves. */
  compute: Compute;
  start: (gpus: readonly string[]) => Promise<RunningWorker>;
  forget: (workerId: string) => Promise<void>;
  init: (totalBatches: number | undefined) => Promise<Init>;
  log: Log;
  jobLog: (line: string) => void;
  /** Ends the job, because a worker could not be started or set up. */
  end: (cause: EndCause) => void;
  /** Receives internal errors that no other callback reports. */
  onFault: (error: Error) => void;
}

/** As many workers as the submission wants, but no more than batches are left. At least one, for `on_job_complete`. */
export function wantedWorkers(asked: number, batchesLeft: number): number {
  return Math.max(1, Math.min(asked, batchesLeft));
}

export class JobWorkers {
  private readonly options: JobWorkersOptions;
  private readonly events: BatchWorkerEvents;
  /** Each worker with its reservation. */
  private readonly workers = new Map<BatchWorker, Reservation>();
  private readonly asks = new Set<Ask>();
  /** Reservations of workers that are gone, so that their replacements do not wait again. */
  private kept: Reservation[] = [];
  private wanted = 0;
  /**
   * Since when some wanted workers have not asked for compute, because the machine could not hold them; else infinity.
   */
  private unaskedSinceMs = Number.POSITIVE_INFINITY;
  private starting = 0;
  private failed = 0;
  private isStopped = false;
  /** The job is about to end because of an internal error: no worker is started any more. */
  private isFaulty = false;
  private hasLoggedFullDisk = false;
  private hasLoggedWaiting = false;
  private owner: WorkersOwner = NO_OWNER;

  constructor(options: JobWorkersOptions) {
    this.options = options;
    this.events = containAll("a worker of a job", this.eventsOfWorkers(), options.onFault);
  }

  /** Sets the phase that the workers serve from now on. */
  serve(owner: WorkersOwner): void {
    this.owner = owner;
  }

  startMissing(): void {
    this.keepAt(this.owner.wantedWorkers);
  }

  /**
   * Starts or asks for workers up to `count`, and cancels asks above it. Returns at once. `count` may be any number
   * that a submission has: no more asks wait at once than the empty machine could grant.
   */
  keepAt(count: number): void {
    if (this.isStopped) return;
    this.wanted = count;
    const surplus = this.workers.size + this.starting + this.asks.size - count;
    for (const ask of surplus > 0 ? [...this.asks].slice(-surplus) : []) this.cancel(ask);
    while (!this.isFaulty && this.unasked > 0 && this.kept.length > 0) this.startWith(this.kept.pop()!);
    this.giveKeptBack();
    this.askForMissing();
  }

  private askForMissing(): void {
    const { account, compute } = this.options;
    if (this.isStopped || this.isFaulty) return;
    const most = Math.max(1, account.capacity(compute));
    while (this.unasked > 0 && this.asks.size < most) this.askForOne();
    this.unaskedSinceMs =
      this.unasked === 0 ? Number.POSITIVE_INFINITY : Math.min(this.unaskedSinceMs, performance.now());
  }

  /** Workers that are wanted but have not asked for compute yet. */
  private get unasked(): number {
    return Math.max(0, this.wanted - this.workers.size - this.starting - this.asks.size);
  }

  ready(): BatchWorker[] {
    return [...this.workers.keys()].filter((worker) => worker.state === "ready");
  }

  /** The counts of the contract. A worker that has waited long for compute is stalled, not pending. */
  counts(nowMs: number): WorkerCounts {
    const running = this.ready().length;
    const stalled = this.waiting(nowMs - STALLED_AFTER_MS);
    return {
      pending: this.asks.size + this.unasked - stalled,
      initializing: this.workers.size - running + this.starting,
      running,
      succeeded: 0,
      failed: this.failed,
      stalled,
    };
  }

  /** Describes in a sentence what the workers without compute wait for; undefined if there are none. */
  describeWaiting(): string | undefined {
    const { account, compute } = this.options;
    const size = this.asks.size + this.unasked;
    if (size === 0) return undefined;
    return `${size} worker${size === 1 ? " waits" : "s wait"} for compute: ${account.describe(compute)}`;
  }

  /** Counts the workers that have waited for compute since before `sinceMs`. */
  waiting(sinceMs: number): number {
    const asking = [...this.asks].filter((ask) => ask.sinceMs < sinceMs).length;
    return asking + (this.unaskedSinceMs < sinceMs ? this.unasked : 0);
  }

  /** SIGTERM to all, SIGKILL after `graceMs`; resolves when they are gone. */
  async stopAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    this.wanted = 0;
    for (const ask of this.asks) this.cancel(ask);
    this.giveKeptBack();
    await Promise.all([...this.workers.keys()].map((worker) => this.stopOne(worker, graceMs)));
  }

  /** An error here does not prevent the other workers from being stopped. */
  private async stopOne(worker: BatchWorker, graceMs: number): Promise<void> {
    try {
      await worker.stop(graceMs);
      await this.drop(worker);
    } catch (error) {
      this.options.onFault(error as Error);
    }
  }

  private askForOne(): void {
    const { account, compute, holder } = this.options;
    const onReserved = (reservation: Reservation) => {
      this.asks.delete(ask);
      this.startWith(reservation);
      this.inside(() => this.askForMissing());
    };
    const ask = account.ask(compute, onReserved, holder);
    this.asks.add(ask);
  }

  private startWith(reservation: Reservation): void {
    contain(
      "a worker of a job",
      () => this.startOne(reservation),
      (error) => this.notStarted(reservation, error),
    );
  }

  private giveKeptBack(): void {
    for (const reservation of this.kept.splice(0)) this.options.account.giveBack(reservation);
  }

  private cancel(ask: Ask): void {
    if (this.options.account.cancel(ask)) this.asks.delete(ask);
  }

  private async startOne(reservation: Reservation): Promise<void> {
    const { start, init, epoch, account, diskWait, end } = this.options;
    this.starting++;
    const running = await whenDiskHasSpace(() => start(reservation.gpus), diskWait)
      .catch((error: Error) => end({ kind: "worker_error", reason: startFailed(error) }))
      .finally(() => this.starting--);
    if (running === undefined) return account.giveBack(reservation);
    const worker = new BatchWorker(running, this.events);
    this.workers.set(worker, reservation);
    // The job may have ended while the process was starting.
    if (!this.isStopped) return worker.setUp(await init(this.owner.totalBatches), epoch);
    await worker.stop(0);
    await this.drop(worker);
  }

  private eventsOfWorkers(): BatchWorkerEvents {
    return {
      onReady: (worker) => this.owner.ready(worker),
      onSetUpFailed: (worker, fault) => this.notSetUp(worker, fault),
      onDiskFull: (worker) => this.inside(() => this.startAgain(worker)),
      onDeath: (worker, death) => this.died(worker, death),
      onFault: (error) => this.options.onFault(error),
    };
  }

  private notSetUp(worker: BatchWorker, fault: WorkerFault): void {
    this.failed++;
    this.inside(() => this.drop(worker));
    const kind = fault.evidence?.out_of_memory === undefined ? "worker_error" : "worker_oom";
    this.options.end({ kind, reason: setUpFailed(fault) });
  }

  private async startAgain(worker: BatchWorker): Promise<void> {
    if (!this.hasLoggedFullDisk) this.options.diskWait.onWait(NO_SPACE_FOR_SOCKET);
    this.hasLoggedFullDisk = true;
    await delay(START_AGAIN_MS);
    await this.drop(worker);
    this.startMissing();
  }

  private died(worker: BatchWorker, death: WorkerDeath): void {
    this.inside(() => this.drop(worker));
    if (!this.isStopped) this.logDeath(worker.identity.worker_id, death);
    this.owner.died(worker, death);
    this.startMissing();
  }

  private logDeath(worker_id: string, { exit, broken }: WorkerDeath): void {
    const { jobId: job_id, log, jobLog } = this.options;
    if (broken === undefined) return jobLog(`worker ${worker_id} ${describeExit(exit)}`);
    log.error({ job_id, worker_id, broken }, "a worker broke the protocol and was killed");
    jobLog(`worker ${worker_id} broke the protocol and was killed: ${broken}`);
  }

  /** Logs once, in the job's log, what its workers wait for. */
  logWaiting(nowMs: number): void {
    const waiting = this.waiting(nowMs - WAITING_LOGGED_MS);
    if (waiting === 0 || this.hasLoggedWaiting) return;
    this.hasLoggedWaiting = true;
    const { account, compute, jobLog } = this.options;
    jobLog(`${waiting} of ${this.wanted} workers wait for compute: ${account.describe(compute)}`);
  }

  private inside(work: () => unknown): void {
    contain("the workers of a job", work, (error) => this.fault(error));
  }

  private fault(error: Error): void {
    this.isFaulty = true;
    this.options.onFault(error);
  }

  /** Gives the reservation back, unless a worker already holds it. */
  private notStarted(reservation: Reservation, error: Error): void {
    this.fault(error);
    if (![...this.workers.values()].includes(reservation)) this.options.account.giveBack(reservation);
  }

  private async drop(worker: BatchWorker): Promise<void> {
    const { account, forget } = this.options;
    const reservation = this.workers.get(worker);
    if (reservation === undefined) return;
    this.workers.delete(worker);
    if (this.isStopped) account.giveBack(reservation);
    else this.kept.push(reservation);
    await forget(worker.identity.worker_id);
  }
}
