/**
 * Brings batches to workers: leases them out as credit allows, settles what comes back, and charges a death to the
 * batch in hand only. It decides nothing about the job: that is job-run.ts.
 */

import { contain } from "../../base/boundary.ts";
import type { JobReason } from "../../contracts/jobs.ts";
import {
  BROKEN_WORKERS_MAX,
  CREDIT_BYTES_MAX,
  DEADLY_BATCHES_MAX,
  IDLE_DEATHS_MAX,
} from "../../contracts/limits/jobs.ts";
import type { WorkerExit } from "../../engine/engine.ts";
import type { Ack, WorkerFault } from "../../protocol/messages.ts";
import type { DeadLetter } from "../letters/letters.ts";
import type { FailedAttempt } from "../records/batch-rows.ts";
import type { BatchWorker, LeasedBatch, Leaser, WorkerDeath } from "./batch-worker.ts";
import type { LeaseCursor } from "./lease-cursor.ts";
import type { Settlements } from "./settlements.ts";
import type { Solitude, SolitudeMember } from "./solitude.ts";
import { deathFault, IDLE_DEATHS, keepDying } from "./worker-death.ts";

export interface DispatcherOptions {
  cursor: LeaseCursor;
  settlements: Settlements;
  totalBatches: number;
  /** Batches that were alone in hand when the server died: charged for that, once, before they go out again. */
  condemned: Set<number>;
  /** Batches that were interrupted too often: each runs alone on the server, recorded before it goes out. */
  alone: ReadonlySet<number>;
  /** Batches below this index go out recorded, one per worker: one of them may have brought the machine down. */
  recordedBefore: number;
  solitude: Solitude;
  /** Workers that died in a row, while the job was still being enqueued. */
  idleDeaths: number;
  /** The most attempts of a batch; `attempts` has those already charged to batches that failed. */
  maxAttempts: number;
  attempts: Map<number, number>;
  /** Makes the dead letter of a batch that finally failed; undefined if the job has no dead letter queue. */
  letterOf: ((failed: FailedAttempt, receiveCount: number, body: Uint8Array) => DeadLetter) | undefined;
  /** `predictor.timeout` in milliseconds, for the message. */
  timeoutMs: number | undefined;
  onAllSettled: () => void;
  onWorkersKeepDying: (kind: "worker_error" | "worker_oom", reason: JobReason) => void;
  onInputError: (error: Error) => void;
  /** Receives internal errors that no other callback reports. */
  onFault: (error: Error) => void;
}

export class Dispatcher implements SolitudeMember, Leaser {
  private readonly options: DispatcherOptions;
  private readonly workers = new Set<BatchWorker>();
  /** Workers whose next batch is being recorded as in hand; they get it after that commit. */
  private readonly recording = new Set<BatchWorker>();
  private isAlone = false;
  private isFilling = false;
  private idleDeaths: number;
  private deadlyBatches = 0;
  private brokenWorkers = 0;
  private isClosed = false;

  constructor(options: DispatcherOptions) {
    this.options = options;
    this.idleDeaths = options.idleDeaths;
    options.solitude.join(this);
  }

  get isIdle(): boolean {
    for (const worker of this.workers) if (worker.outstanding.count > 0) return false;
    return this.recording.size === 0;
  }

  addWorker(worker: BatchWorker): void {
    this.workers.add(worker);
    worker.serve(this);
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
      .sort((a, b) => a.outstanding.count - b.outstanding.count);
    for (const worker of ready) if (!this.isAlone) this.leaseTo(worker);
  }

  /** Settles the batches of an ACK that check-ack.ts has accepted. */
  acked(worker: BatchWorker, ack: Ack): void {
    if (this.isClosed) return worker.outstanding.dropUpTo(ack.upTo);
    const { cursor, settlements } = this.options;
    const failures = new Map(ack.failures.map(({ delivery, fault }) => [delivery, fault]));
    let count = 0;
    for (
      let taken = worker.outstanding.shiftUpTo(ack.upTo);
      taken !== undefined;
      taken = worker.outstanding.shiftUpTo(ack.upTo)
    ) {
      count++;
      const { segment } = cursor.find(taken.batchIndex);
      const fault = failures.size === 0 ? undefined : failures.get(taken.delivery);
      if (fault === undefined) settlements.succeed(segment, taken.batchIndex);
      else this.fail(taken.batchIndex, "fault", fault);
    }
    settlements.addSuccessTime(ack.successUs);
    worker.credit.learn(ack.succeeded, ack.successUs);
    this.idleDeaths = 0;
    if (ack.succeeded > 0) this.deadlyBatches = 0;
    settlements.commitSoon(() => {
      worker.uncommitted -= count;
    });
  }

  released(batches: number[]): void {
    this.options.cursor.putBack(batches);
    this.pump();
  }

  died(worker: BatchWorker, death: WorkerDeath): void {
    this.workers.delete(worker);
    if (this.isClosed) return;
    const { cursor } = this.options;
    const isAlone = death.isNoteLost && death.outstanding.length === 1;
    const guilty = death.inHand ?? (isAlone ? death.outstanding[0] : undefined);
    if (death.isNoteLost && guilty === undefined)
      for (const batch of death.outstanding) cursor.suspect(batch);
    this.giveBack(death.outstanding.filter((batch) => batch !== guilty));
    if (death.broken !== undefined) {
      this.brokenWorker(death, death.broken);
    } else if (guilty === undefined) {
      this.idleDeath(death);
    } else {
      const fault = death.timedOut ? timeoutFault(this.options.timeoutMs ?? 0) : deathFault(death.exit);
      const isFinal = this.fail(guilty, death.timedOut ? "fault" : causeOf(death), fault);
      if (isFinal && !death.timedOut) this.deadlyBatch(death);
    }
    // A batch that must run alone needs a worker. Without one, the turn ends and other jobs can use what was freed.
    if (this.workers.size === 0) this.endSolitude();
    this.pump();
    this.options.solitude.hasChanged();
  }

  /** Called after each commit: credit has come back, and settled segments can be dropped. */
  committed(): void {
    this.options.cursor.dropSettled();
    this.pump();
    this.options.solitude.hasChanged();
  }

  /** Workers whose batch in hand has exceeded its timeout. */
  overdue(nowMs: number, timeoutMs: number): BatchWorker[] {
    return [...this.workers].filter(
      (worker) => worker.outstanding.count > 0 && nowMs - worker.lastProgressMs > timeoutMs,
    );
  }

  private leaseTo(worker: BatchWorker): void {
    const { cursor } = this.options;
    const batches: LeasedBatch[] = [];
    let { bytes } = worker.outstanding;
    for (let free = worker.freeCredit; free > 0 && bytes < CREDIT_BYTES_MAX; free--) {
      const index = this.takeBatch();
      if (index === undefined) break;
      const isRecorded = this.isRecorded(index);
      const isByItself = isRecorded || cursor.isSuspect(index);
      if (isByItself && (batches.length > 0 || worker.outstanding.count > 0)) {
        cursor.putBack([index]);
        break;
      }
      if (isRecorded) return this.leaseRecorded(worker, index);
      const segment = cursor.find(index);
      batches.push({ index, segment });
      bytes += segment.entryBytes(index);
      if (isByItself) break;
    }
    if (batches.length > 0) worker.lease(batches);
  }

  private isRecorded(batch: number): boolean {
    const { recordedBefore, alone } = this.options;
    return batch < recordedBefore || (alone.size > 0 && alone.has(batch));
  }

  /** Records that the batch is in hand, and leases it after that commit. */
  private leaseRecorded(worker: BatchWorker, index: number): void {
    const { alone, solitude, settlements, cursor } = this.options;
    const isAlone = alone.has(index);
    if (isAlone && !solitude.enter(this)) return cursor.putBack([index]);
    this.isAlone = isAlone;
    this.recording.add(worker);
    settlements.recordInHand(index, isAlone ? "alone" : "recorded");
    settlements.commitSoon(() => {
      this.recording.delete(worker);
      if (this.isClosed) return;
      if (this.workers.has(worker)) worker.lease([{ index, segment: cursor.find(index) }]);
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

  private takeBatch(): number | undefined {
    const { cursor, condemned } = this.options;
    for (;;) {
      const index = cursor.take();
      if (index === undefined || !condemned.delete(index)) return index;
      const fault = {
        stage: "predict",
        type: "WorkerDied",
        message:
          "the server or its machine died each time this batch was in hand, the last time with nothing else in hand",
        traceback: "",
      };
      this.fail(index, "death", fault);
    }
  }

  /** Charges an attempt; true if it was the last one. Otherwise the batch goes out again once the charge is durable. */
  private fail(batch: number, cause: FailedAttempt["cause"], fault: WorkerFault): boolean {
    const { attempts, maxAttempts, letterOf, settlements, cursor } = this.options;
    const loaded = cursor.find(batch);
    const count = (attempts.get(batch) ?? 0) + 1;
    const failed = { batch_index: batch, cause, fault, isFinal: count >= maxAttempts };
    if (failed.isFinal) attempts.delete(batch);
    else attempts.set(batch, count);
    const letter = failed.isFinal ? letterOf?.(failed, count, loaded.payload(batch)) : undefined;
    settlements.fail(loaded.segment, failed, letter);
    settlements.commitSoon(() => {
      if (!failed.isFinal) cursor.putBehind(batch);
    });
    return failed.isFinal;
  }

  private idleDeath({ exit }: WorkerDeath): void {
    if (++this.idleDeaths < IDLE_DEATHS_MAX) return;
    this.giveUp(exit, IDLE_DEATHS);
  }

  /** Counted over the whole run: such a worker may do some batches well before it breaks again. */
  private brokenWorker({ exit }: WorkerDeath, broken: string): void {
    if (++this.brokenWorkers < BROKEN_WORKERS_MAX) return;
    this.giveUp(exit, `${BROKEN_WORKERS_MAX} workers broke the protocol (the last one: ${broken})`);
  }

  private deadlyBatch({ exit }: WorkerDeath): void {
    if (++this.deadlyBatches < DEADLY_BATCHES_MAX) return;
    this.giveUp(exit, `${DEADLY_BATCHES_MAX} batches in a row failed because their worker died`);
  }

  private giveUp(exit: WorkerExit, what: string): void {
    this.options.onWorkersKeepDying(
      exit.outOfMemory === undefined ? "worker_error" : "worker_oom",
      keepDying(exit, what),
    );
  }
}

function causeOf({ exit }: WorkerDeath): "death" | "oom" {
  return exit.outOfMemory === undefined ? "death" : "oom";
}

function timeoutFault(timeoutMs: number): WorkerFault {
  return {
    stage: "predict",
    type: "PredictionTimeout",
    message: `predict() took longer than predictor.timeout (${timeoutMs} ms) and was killed`,
    traceback: "",
  };
}
