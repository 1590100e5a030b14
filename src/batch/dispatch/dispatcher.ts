/**
 * Brings batches to workers: leases them out as credit allows, settles what comes back, and charges a death to the
 * batch in hand only. It decides nothing about the job: that is job-run.ts.
 */

import { contain } from "../../base/boundary.ts";
import type { Ack } from "../../protocol/ack.ts";
import type { Deliveries } from "../deliveries/deliveries.ts";
import type { LeasedBatch } from "../deliveries/lease-runs.ts";
import type { RowsPlace } from "../rows/rows-place.ts";
import type { BatchWorker } from "../workers/batch-worker.ts";
import { chargedBatch, failureOf, type WorkerDeath } from "../workers/worker-death.ts";
import type { WorkerLosses, WorkersKeepDying } from "../workers/worker-losses.ts";
import type { Leaser } from "../workers/workers-owner.ts";
import { Attempts, type AttemptsOptions } from "./attempts.ts";
import { type FormerDeaths, NextBatches } from "./next-batches.ts";
import type { LoadedSegment } from "./segment-reader.ts";
import type { Solitude, SolitudeMember } from "./solitude.ts";

export interface DispatcherOptions extends AttemptsOptions, FormerDeaths {
  totalBatches: number;
  solitude: Solitude;
  /** How workers died up to now, also while the job was still being enqueued. */
  losses: WorkerLosses;
  /** `predictor.timeout` in milliseconds, for the message. */
  timeoutMs: number | undefined;
  onAllSettled: () => void;
  onWorkersKeepDying: (cause: WorkersKeepDying) => void;
  onInputError: (error: Error) => void;
  /** Receives internal errors that no other callback reports. */
  onFault: (error: Error) => void;
}

export class Dispatcher implements SolitudeMember, Leaser {
  private readonly options: DispatcherOptions;
  private readonly attempts: Attempts;
  private readonly next: NextBatches;
  private readonly workers = new Set<BatchWorker>();
  /** Workers whose next batch is being recorded as in hand; they get it after that commit. */
  private readonly recording = new Set<BatchWorker>();
  private isAlone = false;
  private isFilling = false;
  private isOpening = false;
  private isClosed = false;

  constructor(options: DispatcherOptions) {
    this.options = options;
    this.attempts = new Attempts(options);
    this.next = new NextBatches(options.cursor, this.attempts, options, options.isolation);
    options.solitude.join(this);
  }

  get isIdle(): boolean {
    for (const worker of this.workers) if (worker.deliveries.outstanding.count > 0) return false;
    return this.recording.size === 0;
  }

  addWorker(worker: BatchWorker): void {
    this.workers.add(worker);
    worker.leaser = this;
    this.pump();
  }

  /** Stops leasing. Results that still arrive do not count. */
  close(): void {
    this.isClosed = true;
    this.options.settlements.recordAllBack();
    this.options.solitude.leave(this);
  }

  /** Leases batches to workers with free credit, the least busy worker first. */
  pump(): void {
    if (this.isClosed) return;
    if (this.isAlone && this.isIdle) this.endSolitude();
    if (this.options.settlements.settledBatches >= this.options.totalBatches)
      return this.options.onAllSettled();
    this.lease();
    this.fill();
    this.openSearch();
  }

  /** Begins the next search for guilty items, one at a time. */
  private openSearch(): void {
    const { isolation, cursor, onFault } = this.options;
    if (isolation === undefined || this.isOpening || !isolation.mayOpen) return;
    this.isOpening = true;
    const goOn = (batch: number) => {
      this.isOpening = false;
      cursor.putBack([batch]);
      this.pump();
    };
    contain(
      "the search for guilty items",
      () => isolation.open().then(goOn),
      (error) => {
        if (!this.isClosed) onFault(error);
      },
    );
  }

  /** Reads ahead, with at most one read at a time. */
  private fill(): void {
    const { cursor } = this.options;
    if (this.isFilling || !cursor.needsFill) return;
    this.isFilling = true;
    const { onInputError, onFault } = this.options;
    const goOn = () => {
      this.isFilling = false;
      this.pump();
    };
    contain("the input of a job", () => cursor.fill().then(goOn, onInputError), onFault);
  }

  private lease(): void {
    if (!this.options.solitude.isOpenTo(this)) return;
    const ready = [...this.workers]
      .filter((worker) => worker.freeCredit > 0 && !this.recording.has(worker))
      .sort((a, b) => a.deliveries.outstanding.count - b.deliveries.outstanding.count);
    for (const worker of ready) if (!this.isAlone) this.leaseTo(worker);
  }

  /** Settles the batches of an ACK that check-ack.ts has accepted. */
  acked({ deliveries }: BatchWorker, ack: Ack): void {
    if (this.isClosed) return deliveries.outstanding.dropUpTo(ack.upTo);
    const { settlements, losses } = this.options;
    const count = this.settle(deliveries, ack);
    settlements.addSuccessTime(ack.successUs);
    deliveries.credit.learn(ack.succeeded, ack.successUs);
    losses.settled(ack.succeeded);
    settlements.commitSoon(() => {
      deliveries.uncommitted -= count;
    });
  }

  /** Returns how many batches the ACK has. */
  private settle({ outstanding, rows }: Deliveries, { upTo, failures, rows: sizes }: Ack): number {
    const { cursor } = this.options;
    const faults = new Map(failures.map(({ delivery, fault }) => [delivery, fault]));
    let count = 0;
    let succeeded = 0;
    for (let taken = outstanding.shiftUpTo(upTo); taken !== undefined; taken = outstanding.shiftUpTo(upTo)) {
      count++;
      const fault = faults.size === 0 ? undefined : faults.get(taken.delivery);
      if (fault !== undefined) this.attempts.fail(taken.batchIndex, { cause: "fault", fault });
      else {
        const place = rows?.take(sizes[succeeded++]!);
        this.succeed(cursor.find(taken.batchIndex), taken.batchIndex, place);
      }
    }
    return count;
  }

  private succeed(loaded: LoadedSegment, batch: number, place: RowsPlace | undefined): void {
    const { settlements, isolation, cursor } = this.options;
    if (isolation?.has(batch) !== true) settlements.succeed(loaded.segment, batch, place);
    else if (isolation.succeeded(batch, loaded, place)) settlements.commitSoon(() => cursor.putBack([batch]));
  }

  released(batches: number[]): void {
    this.options.cursor.putBack(batches);
    this.pump();
  }

  died(worker: BatchWorker, death: WorkerDeath): void {
    this.workers.delete(worker);
    if (this.isClosed) return;
    const charged = chargedBatch(death);
    if (death.isNoteLost && charged === undefined)
      for (const batch of death.outstanding) this.options.cursor.suspect(batch);
    this.giveBack(death.outstanding.filter((batch) => batch !== charged));
    const cause = this.chargeDeath(death, charged);
    if (cause !== undefined) this.options.onWorkersKeepDying(cause);
    // A batch that must run alone needs a worker. Without one, the turn ends and other jobs can use what was freed.
    if (this.workers.size === 0) this.endSolitude();
    this.pump();
    this.options.solitude.hasChanged();
  }

  /** Charges the death to its batch. The result is defined if the job must end. */
  private chargeDeath(death: WorkerDeath, charged: number | undefined): WorkersKeepDying | undefined {
    const { losses, timeoutMs = 0 } = this.options;
    const { exit, broken, timedOut } = death;
    if (broken !== undefined) return losses.brokeProtocol(exit, broken);
    if (charged === undefined) return death.isInterruption ? undefined : losses.diedIdle(exit);
    const isFinal = this.attempts.fail(charged, failureOf(death, timeoutMs));
    return isFinal && !timedOut ? losses.failedBatch(exit) : undefined;
  }

  /** Called after each commit: credit has come back, and settled segments can be dropped. */
  committed(): void {
    this.options.cursor.dropSettled();
    this.pump();
    this.options.solitude.hasChanged();
  }

  /** Takes the workers out that get no more batches and have none left. */
  takeLeaving(): BatchWorker[] {
    if (this.isClosed) return [];
    const leaving = [...this.workers].filter(
      (worker) => worker.isLeaving && worker.deliveries.isIdle && !this.recording.has(worker),
    );
    for (const worker of leaving) this.workers.delete(worker);
    return leaving;
  }

  /** Workers whose batch in hand has exceeded its timeout. */
  overdue(nowMs: number, timeoutMs: number): BatchWorker[] {
    return [...this.workers].filter(
      (worker) => worker.deliveries.outstanding.count > 0 && nowMs - worker.lastProgressMs > timeoutMs,
    );
  }

  private leaseTo(worker: BatchWorker): void {
    const batches = this.next.takeFor(worker);
    const first = batches[0];
    if (first === undefined) return;
    if (this.next.isRecorded(first.index)) this.leaseRecorded(worker, first);
    else worker.lease(batches);
  }

  /** Records that the batch is in hand, and leases it after that commit. */
  private leaseRecorded(worker: BatchWorker, batch: LeasedBatch): void {
    const { solitude, settlements, cursor } = this.options;
    const { index } = batch;
    const isAlone = this.next.isAlone(index);
    if (isAlone && !solitude.enter(this)) return cursor.putBack([index]);
    this.isAlone = isAlone;
    this.recording.add(worker);
    settlements.recordInHand(index, isAlone ? "alone" : "recorded");
    settlements.commitSoon(() => {
      this.recording.delete(worker);
      if (this.isClosed) return;
      if (this.workers.has(worker)) worker.lease([batch]);
      else this.giveBack([index]);
    });
  }

  /** Puts back batches that never started, or may not have started. They go out next, without a charge. */
  private giveBack(batches: readonly number[]): void {
    const { cursor, settlements } = this.options;
    for (const batch of batches) settlements.recordBack(batch);
    cursor.putBack(batches);
    settlements.commitSoon(() => {});
  }

  private endSolitude(): void {
    this.isAlone = false;
    this.options.solitude.exit(this);
  }
}
