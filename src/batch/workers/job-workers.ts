/** The workers of one job: starts as many as are wanted and fit, replaces dead ones, and stops all at the end. */
import { contain, containAll } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import type { WorkerCounts } from "../../contracts/jobs.ts";
import type { Reservation } from "../../engine/reservations.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { setUpFailed } from "../records/job-reasons.ts";
import { BatchWorker } from "./batch-worker.ts";
import type { BatchWorkerEvents } from "./batch-worker-events.ts";
import type { JobWorkersOptions } from "./job-workers-options.ts";
import { LeavingWorkers } from "./leaving-workers.ts";
import type { WorkerDeath } from "./worker-death.ts";
import { WorkerLog } from "./worker-log.ts";
import { WorkerProcesses } from "./worker-processes.ts";
import { WorkerReservations } from "./worker-reservations.ts";
import { NO_OWNER, type WorkersOwner } from "./workers-owner.ts";

const START_AGAIN_MS = 1_000;
/** How long a worker that is replaced may take for its `atexit` functions. */
const RECYCLED_GRACE_MS = 10_000;
const FIRST_STARTS = "the first worker is starting";
const NO_SPACE_FOR_SOCKET = { code: "ENOSPC" };

export class JobWorkers {
  private readonly options: JobWorkersOptions;
  private readonly events: BatchWorkerEvents;
  /** Each worker with its reservation. */
  private readonly workers = new Map<BatchWorker, Reservation>();
  private readonly reservations: WorkerReservations;
  private readonly processes: WorkerProcesses;
  private readonly log: WorkerLog;
  readonly leaving: LeavingWorkers;
  private isStopped = false;
  private hasLoggedFullDisk = false;
  private owner: WorkersOwner = NO_OWNER;

  constructor(options: JobWorkersOptions) {
    this.options = options;
    this.log = new WorkerLog(options);
    this.leaving = new LeavingWorkers(options.lifetime);
    this.processes = new WorkerProcesses(options);
    this.reservations = new WorkerReservations(options, {
      reserved: (reservation) => this.startWith(reservation),
      fault: (error) => this.fault(error),
    });
    this.events = containAll("a worker of a job", this.eventsOfWorkers(), options.onFault);
  }

  /** Sets the phase that the workers serve from now on. */
  serve(owner: WorkersOwner): void {
    this.owner = owner;
  }

  startMissing(): void {
    this.keepAt(this.owner.wantedWorkers);
  }

  /** Starts or asks for workers up to `count`, which may be any number, and cancels asks above it. Returns at once. */
  keepAt(count: number): void {
    if (!this.isStopped) this.reservations.keepAt(this.leaving.isDraining ? 0 : count);
  }

  /** Starts no worker any more, and lets each one go once it has no batch. Resolves when none is left. */
  drain(): Promise<void> {
    const drained = this.leaving.drain(this.workers.keys());
    this.keepAt(0);
    for (const worker of [...this.workers.keys()].filter(({ state }) => state !== "ready"))
      this.inside(() => this.stopOne(worker, RECYCLED_GRACE_MS));
    return drained;
  }

  ready(): BatchWorker[] {
    return this.all.filter((worker) => worker.isServing);
  }

  get all(): BatchWorker[] {
    return [...this.workers.keys()];
  }

  /** The counts of the contract. */
  counts(nowMs: number): WorkerCounts {
    const running = this.all.filter(({ state }) => state === "ready").length;
    return { ...this.reservations.counts(running, nowMs), running, succeeded: 0, failed: this.log.failed };
  }

  /** Describes in a sentence what the workers without compute wait for, or the job for its first one. */
  describeWaiting(withNames: boolean): string | undefined {
    const starting = this.log.hadWorker || this.reservations.held === 0 ? undefined : FIRST_STARTS;
    return this.reservations.describeWaiting(withNames) ?? starting;
  }

  /**
   * SIGTERM to all, SIGKILL after `graceMs`; resolves when they are gone. If the job `isComplete`, the next one of its
   * version may use their processes.
   */
  async stopAll(graceMs: number, isComplete = false): Promise<void> {
    this.isStopped = true;
    this.reservations.stop();
    if (isComplete) for (const worker of [...this.workers.keys()]) this.handOn(worker);
    await Promise.all([...this.workers.keys()].map((worker) => this.stopOne(worker, graceMs)));
  }

  private handOn(worker: BatchWorker): void {
    const { warm } = this.options;
    const process = warm === undefined ? undefined : worker.handOn();
    if (process !== undefined && warm!.keep(process)) this.remove(worker);
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

  private startWith(reservation: Reservation): void {
    contain(
      "a worker of a job",
      () => this.startOne(reservation),
      (error) => this.notStarted(reservation, error),
    );
  }

  private async startOne(reservation: Reservation): Promise<void> {
    const { init, epoch, lifetime, openRows } = this.options;
    const begun = await this.processes.begin(reservation);
    if (begun === undefined) return this.reservations.giveBack(reservation);
    const { process, former, log_file } = begun;
    const worker = new BatchWorker(process, this.events, { lifetime, openRows, former });
    this.workers.set(worker, reservation);
    this.log.started(worker);
    // The job may have ended while the process was starting.
    if (!this.isStopped && !this.leaving.isDraining)
      return worker.setUp({ ...(await init(this.owner.totalBatches)), log_file }, epoch);
    await worker.stop(0);
    await this.drop(worker);
  }

  private eventsOfWorkers(): BatchWorkerEvents {
    return {
      onReady: (worker) => this.isReady(worker),
      onLongStart: (worker, seconds) => this.log.longStart(worker.identity.worker_id, seconds),
      onSetUpFailed: (worker, fault) => this.notSetUp(worker, fault),
      onDiskFull: (worker) => this.startAgain(worker),
      onInterrupted: (worker, exit) => this.replace(worker, async () => this.log.interrupted(worker, exit)),
      onDeath: (worker, death) => this.died(worker, death),
      onFault: (error) => this.options.onFault(error),
    };
  }

  private notSetUp(worker: BatchWorker, fault: WorkerFault): void {
    if (worker.isReused) return this.startAfresh(worker, fault);
    this.log.notSetUp(worker.identity.worker_id, fault);
    this.inside(() => this.drop(worker));
    const kind = fault.evidence?.out_of_memory === undefined ? "worker_error" : "worker_oom";
    this.options.end({ kind, reason: setUpFailed(fault) });
  }

  /** The fault may come from what a former job left in the process: a new one shows whether it does. */
  private startAfresh(worker: BatchWorker, fault: WorkerFault): void {
    this.log.notReused(worker.identity.worker_id, fault);
    this.replace(worker);
  }

  private startAgain(worker: BatchWorker): void {
    if (!this.hasLoggedFullDisk) this.options.diskWait.onWait(NO_SPACE_FOR_SOCKET);
    this.hasLoggedFullDisk = true;
    this.replace(worker, () => delay(START_AGAIN_MS));
  }

  private replace(worker: BatchWorker, before?: () => Promise<void>): void {
    this.inside(async () => {
      await before?.();
      await this.drop(worker);
      this.startMissing();
    });
  }

  private died(worker: BatchWorker, death: WorkerDeath): void {
    if (!this.isStopped) this.inside(() => this.log.died(worker.identity.worker_id, death));
    this.inside(() => this.drop(worker));
    this.owner.died(worker, death);
    this.startMissing();
  }

  private isReady(worker: BatchWorker): void {
    this.log.ready(worker);
    const reservation = this.workers.get(worker);
    if (reservation !== undefined)
      this.reservations.works(reservation, worker.startMs, (isAsked) => this.askToYield(worker, isAsked));
    this.owner.ready(worker);
  }

  private askToYield(worker: BatchWorker, isAsked: boolean): void {
    this.leaving.ask(worker, isAsked);
    if (!isAsked) this.inside(() => worker.leaser.pump());
  }

  /**
   * Ends a worker without a batch: it yields, or has reached `max_requests` or `max_age`. Another one takes its place,
   * once there is compute for it.
   */
  letGo(worker: BatchWorker): void {
    if (worker.isAskedToYield) this.log.yields(worker.identity.worker_id);
    else this.log.recycled(worker.identity.worker_id);
    this.replace(worker, () => worker.stop(RECYCLED_GRACE_MS));
  }

  /** Logs once, in the job's log, what its workers wait for, and asks again for what nobody tells to be free. */
  tick(nowMs: number): void {
    if (!this.isStopped) this.reservations.askAgain();
    this.log.waiting(this.reservations, nowMs);
  }

  private inside(work: () => unknown): void {
    contain("the workers of a job", work, (error) => this.fault(error));
  }

  private fault(error: Error): void {
    this.reservations.stopAsking();
    this.options.onFault(error);
  }

  /** Gives the reservation back, unless a worker already holds it. */
  private notStarted(reservation: Reservation, error: Error): void {
    this.fault(error);
    if (![...this.workers.values()].includes(reservation)) this.reservations.giveBack(reservation);
  }

  private async drop(worker: BatchWorker): Promise<void> {
    if (this.remove(worker)) await this.options.forget(worker.identity.worker_id);
  }

  /** False if it has been removed before. */
  private remove(worker: BatchWorker): boolean {
    const reservation = this.workers.get(worker);
    if (reservation === undefined) return false;
    this.workers.delete(worker);
    this.log.ended(worker);
    this.leaving.hasLeft(worker, this.workers.size);
    if (this.isStopped) this.reservations.giveBack(reservation);
    else this.reservations.keep(reservation);
    return true;
  }
}
