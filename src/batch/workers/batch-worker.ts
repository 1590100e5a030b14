/**
 * One worker of a job: started, set up, fed with leases, and accounted for when it dies. The job's phase decides what a
 * death means for the job (../phase.ts).
 */
import { contain } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import type { RunningWorker, WorkerExit } from "../../engine/engine.ts";
import { ExitWatch } from "../../engine/exit-watch.ts";
import { StartWatch, Wear } from "../../engine/lifetime.ts";
import { TEMPORARY_FAILURE } from "../../engine/worker-exit.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import { encodeByteCount, type Init, MESSAGE, type WorkerFault } from "../../protocol/messages.ts";
import { readFault } from "../../protocol/read-fault.ts";
import { readReady, SetUpReport } from "../../protocol/set-up-report.ts";
import type { WorkerConnection, WorkerConnectionEvents } from "../../protocol/worker-connection.ts";
import { Deliveries } from "../deliveries/deliveries.ts";
import type { LeasedBatch } from "../deliveries/lease-runs.ts";
import type { WarmWorker } from "../warm/warm-workers.ts";
import type { BatchWorkerEvents, BatchWorkerOptions } from "./batch-worker-events.ts";
import { connectWorker } from "./connect-worker.ts";
import { diedInSetUp, NO_REPLY } from "./death-faults.ts";
import { chargeOf } from "./worker-death.ts";
import { type Leaser, NO_LEASER } from "./workers-owner.ts";

const LAST_WORDS_MS = 500;
export class BatchWorker {
  readonly deliveries: Deliveries;
  state: "initializing" | "ready" | "gone" = "initializing";
  hasOnJobComplete = false;
  /** Somebody else should have its compute. */
  isAskedToYield = false;
  /** Monotonic milliseconds of its last sign of progress, or of what it may have waited for. */
  lastProgressMs = performance.now();
  /** How long its process took until it was ready. */
  startMs = 0;
  /** Its process has worked for other jobs. */
  readonly isReused: boolean;
  private readonly process: RunningWorker;
  private readonly events: BatchWorkerEvents;
  /** Who leases batches to this worker and receives its acknowledgements and releases. */
  leaser: Leaser = NO_LEASER;
  private connection: WorkerConnection | undefined;
  private markClosed: () => void = () => {};
  private readonly closed = new Promise<void>((resolve) => {
    this.markClosed = resolve;
  });
  /** Aborted when the worker is gone. */
  private readonly gone = new AbortController();
  private readonly start: StartWatch;
  private readonly setUpReport = new SetUpReport();
  private readonly wear: Wear;
  private readonly exit: ExitWatch;
  private isStopping = false;
  private isHandedOn = false;
  /** It was set up while the job was being enqueued: `total_batch_count` of its `job_spec` is null. */
  private lacksTotal = false;
  private hasTimedOut = false;
  private broken: string | undefined;
  private completion: ((fault: WorkerFault | "died" | undefined) => void) | undefined;

  constructor(process: RunningWorker, events: BatchWorkerEvents, options: BatchWorkerOptions) {
    const { lifetime, openRows, former } = options;
    this.process = process;
    this.events = events;
    this.isReused = former !== undefined;
    this.wear = former?.wear ?? new Wear(lifetime);
    this.exit = former?.exit ?? new ExitWatch(process);
    this.start = new StartWatch(lifetime.startup, 0, {
      onLong: (seconds) => this.events.onLongStart(this, seconds),
      onTimeout: (fault) => this.startTimedOut(fault),
    });
    this.deliveries = new Deliveries(openRows?.((bytes) => this.grantOutput(bytes)));
    this.exit.follow((exit) => contain("the end of a job's worker", () => this.exited(exit), events.onFault));
  }

  get identity() {
    return this.process.identity;
  }

  /** Its last messages may not be read yet: the socket closes after them. */
  private async exited(exit: WorkerExit): Promise<void> {
    if (this.connection !== undefined) await Promise.race([this.closed, delay(LAST_WORDS_MS)]);
    this.onGone(exit);
  }

  /** Resolves when INIT is sent, or the worker is gone. The result follows as `onReady` or `onSetUpFailed`. */
  async setUp(init: Init, epoch: number): Promise<void> {
    this.lacksTotal = init.job_spec?.total_batch_count === null;
    const connection = await connectWorker(this.process, epoch, this.connectionEvents(), {
      gone: this.gone.signal,
      onNoReply: this.isReused ? () => this.startTimedOut(NO_REPLY) : undefined,
    });
    if (connection === undefined || this.gone.signal.aborted) return connection?.close();
    this.connection = connection;
    this.process.met?.(connection.welcome.pid);
    connection.sendJson(MESSAGE.INIT, 0, init);
  }

  private connectionEvents(): WorkerConnectionEvents {
    return {
      expects: () => false,
      onMessage: (type, id, body) => this.onMessage(type, id, body),
      onClose: (broken) => {
        this.broken = broken?.message;
        this.markClosed();
        // A process that has gone on to another job closes this connection itself.
        if (!this.isHandedOn || broken !== undefined) this.process.kill();
      },
    };
  }

  /** Sends the number of batches, once all are enqueued: before the first lease, so that each `predict()` has it. */
  tellTotal(total_batch_count: number): void {
    if (!this.lacksTotal) return;
    this.lacksTotal = false;
    this.connection!.sendJson(MESSAGE.ENQUEUED, 0, { total_batch_count });
  }

  /** It serves. One that is told to end may take a while to leave, and does nothing more. */
  get isServing(): boolean {
    return this.state === "ready" && !this.isStopping;
  }

  get freeCredit(): number {
    if (!this.isServing || this.isAskedToYield) return 0;
    return Math.min(this.deliveries.freeCredit, this.batchesLeft);
  }

  /** It has reached `max_requests` or `max_age`, or should yield: it gets no more batches. */
  get isLeaving(): boolean {
    return this.isAskedToYield || this.batchesLeft <= 0;
  }

  private get batchesLeft(): number {
    return this.wear.leftAfter(this.deliveries.leased);
  }

  lease(batches: readonly LeasedBatch[]): void {
    if (this.deliveries.outstanding.count === 0) this.lastProgressMs = performance.now();
    this.deliveries.lease(batches, this.connection!);
  }

  /** Runs `on_job_complete`. Resolves to the fault that it raised, or to `died` if the worker died in it. */
  completeJob(round: number): Promise<WorkerFault | "died" | undefined> {
    return new Promise((resolve) => {
      this.completion = resolve;
      this.connection!.sendJson(MESSAGE.JOB_COMPLETE, this.deliveries.outstanding.next, { round });
    });
  }

  /** A batch has exceeded its timeout: the whole process group is killed, and the batch in hand is charged. */
  killForTimeout(): void {
    this.hasTimedOut = true;
    this.process.kill();
  }

  /** Leaves its process to another job, whose exit the caller follows; undefined if it is busy or worn out. */
  handOn(): WarmWorker | undefined {
    const { process, connection, exit, wear, deliveries } = this;
    if (connection === undefined || !this.isServing || this.isLeaving || !deliveries.isIdle) return undefined;
    this.isHandedOn = true;
    wear.add(deliveries.leased);
    this.leave();
    return { process, connection, exit, wear };
  }

  async stop(graceMs: number): Promise<void> {
    this.isStopping = true;
    await this.process.stop(graceMs);
  }

  /** An exception here means that the worker broke the protocol: its connection is closed and it is killed. */
  private onMessage(type: number, id: number, body: Buffer): void {
    if (this.isHandedOn) throw new ProtocolError(`a message of type ${type} came after the end of the job`);
    this.lastProgressMs = performance.now();
    if (type === MESSAGE.READY || type === MESSAGE.INIT_FAILED) this.setUpReport.take();
    switch (type) {
      case MESSAGE.READY:
        this.state = "ready";
        this.startMs = this.start.end();
        this.hasOnJobComplete = readReady(body).has_on_job_complete === true;
        return this.events.onReady(this);
      case MESSAGE.INIT_FAILED:
        this.isStopping = true;
        return this.events.onSetUpFailed(this, readFault(body));
      case MESSAGE.ACK: {
        const ack = this.deliveries.acked(id, body);
        return this.inside(() => this.leaser.acked(this, ack));
      }
      case MESSAGE.OUTPUT:
        return this.deliveries.wrote(body);
      case MESSAGE.RELEASE: {
        const batches = this.deliveries.released(id, body);
        return this.inside(() => this.leaser.released(batches));
      }
      case MESSAGE.RESULT:
        return this.completion?.(undefined);
      case MESSAGE.ERROR:
        return this.completion?.(readFault(body));
      case MESSAGE.START: // Progress, which is noted above.
        return;
      default:
        throw new ProtocolError(`a message of type ${type} came from a worker of a job`);
    }
  }

  private startTimedOut(fault: WorkerFault): void {
    this.isStopping = true;
    this.process.kill();
    this.events.onSetUpFailed(this, fault);
  }

  private grantOutput(bytes: number): void {
    this.lastProgressMs = performance.now();
    if (this.state !== "gone") this.connection?.send(MESSAGE.OUTPUT_CREDIT, 0, encodeByteCount(bytes));
  }

  /** Runs a callback of the leaser. An error in it is a bug in Quern: the worker is not killed for it. */
  private inside(work: () => void): void {
    contain("a worker of a job", work, this.events.onFault);
  }

  private leave(): void {
    this.state = "gone";
    this.start.end();
    this.gone.abort();
    this.deliveries.rows?.end();
  }

  private onGone(exit: WorkerExit): void {
    const wasReady = this.state === "ready";
    const note = this.process.lastNote();
    this.leave();
    this.connection?.close();
    this.completion?.("died");
    if (this.isStopping) return;
    if (this.connection === undefined && exit.code === TEMPORARY_FAILURE) return this.events.onDiskFull(this);
    if (!wasReady && exit.interruption !== undefined) return this.events.onInterrupted(this, exit);
    if (!wasReady) return this.events.onSetUpFailed(this, diedInSetUp(exit, this.broken));
    const outstanding = this.deliveries.outstanding.takeAll();
    const left = { outstanding, broken: this.broken, exit, timedOut: this.hasTimedOut };
    this.events.onDeath(this, { ...left, ...chargeOf(note, this.connection?.welcome.connection, left) });
  }
}
