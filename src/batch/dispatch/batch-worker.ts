/**
 * One worker of a job: started, set up, fed with leases, and accounted for when it dies. The job's phase decides what a
 * death means for the job (../phase.ts).
 */

import { contain } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { CREDIT_BYTES_MAX } from "../../contracts/limits/jobs.ts";
import type { RunningWorker, WorkerExit } from "../../engine/engine.ts";
import { readDeliveryNote } from "../../protocol/delivery-note.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import {
  type Ack,
  decodeAck,
  decodeRelease,
  type Init,
  MESSAGE,
  type Ready,
  type WorkerFault,
} from "../../protocol/messages.ts";
import { readFault } from "../../protocol/read-fault.ts";
import { WorkerConnection } from "../../protocol/worker-connection.ts";
import { checkAck } from "./check-ack.ts";
import { Credit } from "./credit.ts";
import { Outstanding } from "./outstanding.ts";
import type { LoadedSegment } from "./segment-reader.ts";
import { diedInSetUp } from "./worker-death.ts";

const CONNECT_RETRY_MS = 5;
const LAST_WORDS_MS = 500;
/** Exit code of a worker that could not listen (python/quern_runtime/__main__.py). */
const TEMPORARY_FAILURE = 75;
const LEASE_FRAME_BYTES = 64 * 1024;
/** Used until `serve`: nothing is leased yet, so nothing can be acknowledged or given back. */
const NO_LEASER: Leaser = { acked: () => {}, released: () => {} };

export interface LeasedBatch {
  index: number;
  segment: LoadedSegment;
}

export interface WorkerDeath {
  /** The batch that predict() was working on; undefined if there was none, or if it is unknown. */
  inHand: number | undefined;
  /** All batches that were at the worker, the one in hand included. */
  outstanding: number[];
  /** The note was lost: any of the outstanding batches may have been in hand. */
  isNoteLost: boolean;
  exit: WorkerExit;
  /** We killed it because a batch ran past `predictor.timeout`. */
  timedOut: boolean;
  /** It was killed because it broke the protocol. The batch in hand is then unknown. */
  broken: string | undefined;
}

export interface BatchWorkerEvents {
  onReady(worker: BatchWorker): void;
  onSetUpFailed(worker: BatchWorker, fault: WorkerFault): void;
  /** It could not even listen, because the machine has run out of inodes or file handles. */
  onDiskFull(worker: BatchWorker): void;
  onDeath(worker: BatchWorker, death: WorkerDeath): void;
  /** Receives internal errors that no other callback reports. */
  onFault(error: Error): void;
}

/** The owner of the leased batches: it receives acknowledgements, and batches that are given back. */
export interface Leaser {
  acked(worker: BatchWorker, ack: Ack): void;
  released(batches: number[]): void;
}

export class BatchWorker {
  readonly outstanding = new Outstanding();
  readonly credit = new Credit();
  state: "initializing" | "ready" | "gone" = "initializing";
  hasOnJobComplete = false;
  /** Leased and not yet committed; credit returns only with the commit. */
  uncommitted = 0;
  /** Monotonic milliseconds of the last sign of progress. */
  lastProgressMs = performance.now();
  private readonly process: RunningWorker;
  private readonly events: BatchWorkerEvents;
  private leaser: Leaser = NO_LEASER;
  private connection: WorkerConnection | undefined;
  private markClosed: () => void = () => {};
  private readonly closed = new Promise<void>((resolve) => {
    this.markClosed = resolve;
  });
  private isStopping = false;
  /** It was set up while the job was being enqueued: `total_batch_count` of its `job_spec` is null. */
  private lacksTotal = false;
  private hasTimedOut = false;
  private broken: string | undefined;
  private completion: ((fault: WorkerFault | "died" | undefined) => void) | undefined;

  constructor(process: RunningWorker, events: BatchWorkerEvents) {
    this.process = process;
    this.events = events;
    contain("the end of a job's worker", () => this.followExit(), events.onFault);
  }

  get identity() {
    return this.process.identity;
  }

  private async followExit(): Promise<void> {
    const exit = await this.process.exited;
    // Its last messages may not be read yet: the socket closes after them.
    if (this.connection !== undefined) await Promise.race([this.closed, delay(LAST_WORDS_MS)]);
    this.onGone(exit);
  }

  /**
   * Connects as soon as the process listens, and sends the predictor's class. Resolves when INIT is sent, or when the
   * worker is gone. The result follows as `onReady` or `onSetUpFailed`.
   */
  async setUp(init: Init, epoch: number): Promise<void> {
    this.lacksTotal = init.job_spec?.total_batch_count === null;
    const hello = { role: "controller", token: this.identity.token, epoch } as const;
    const events = {
      onMessage: (type: number, id: number, body: Buffer) => this.onMessage(type, id, body),
      onClose: (broken: ProtocolError | undefined) => {
        this.broken = broken?.message;
        this.markClosed();
        this.process.kill();
      },
    };
    while (this.state !== "gone") {
      const connection = await WorkerConnection.open(this.process.address, hello, events).catch(
        () => undefined,
      );
      if (connection !== undefined) {
        this.connection = connection;
        connection.sendJson(MESSAGE.INIT, 0, init);
        return;
      }
      await delay(CONNECT_RETRY_MS);
    }
  }

  /**
   * Sends the number of batches, once all are enqueued. Called before the first lease, so that each `predict()` can use
   * it.
   */
  tellTotal(total_batch_count: number): void {
    if (!this.lacksTotal) return;
    this.lacksTotal = false;
    this.connection!.sendJson(MESSAGE.ENQUEUED, 0, { total_batch_count });
  }

  /** Sets who leases batches to this worker and receives its acknowledgements and releases. */
  serve(leaser: Leaser): void {
    this.leaser = leaser;
  }

  get freeCredit(): number {
    const isFull = this.outstanding.bytes >= CREDIT_BYTES_MAX;
    return this.state === "ready" && !this.isStopping && !isFull ? this.credit.batches - this.uncommitted : 0;
  }

  /** Sends batches in as few frames as possible. Adjacent batches of a segment share a frame, without a copy. */
  lease(batches: readonly LeasedBatch[]): void {
    if (this.outstanding.count === 0) this.lastProgressMs = performance.now();
    this.uncommitted += batches.length;
    for (let from = 0; from < batches.length; ) {
      const { index, segment } = batches[from]!;
      const count = runLength(batches, from);
      this.connection!.send(MESSAGE.LEASE, this.outstanding.next, segment.entries(index, count));
      for (let batch = index; batch < index + count; batch++)
        this.outstanding.push(batch, segment.entryBytes(batch));
      from += count;
    }
  }

  /** Runs `on_job_complete`. Resolves to the fault that it raised, or to `died` if the worker died in it. */
  completeJob(round: number): Promise<WorkerFault | "died" | undefined> {
    return new Promise((resolve) => {
      this.completion = resolve;
      this.connection!.sendJson(MESSAGE.JOB_COMPLETE, this.outstanding.next, { round });
    });
  }

  /** A batch has exceeded its timeout: the whole process group is killed, and the batch in hand is charged. */
  killForTimeout(): void {
    this.hasTimedOut = true;
    this.process.kill();
  }

  async stop(graceMs: number): Promise<void> {
    this.isStopping = true;
    await this.process.stop(graceMs);
  }

  /** An exception here means that the worker broke the protocol: its connection is closed and it is killed. */
  private onMessage(type: number, id: number, body: Buffer): void {
    this.lastProgressMs = performance.now();
    switch (type) {
      case MESSAGE.READY:
        this.state = "ready";
        this.hasOnJobComplete = (JSON.parse(body.toString()) as Ready).has_on_job_complete;
        return this.events.onReady(this);
      case MESSAGE.INIT_FAILED:
        this.isStopping = true;
        return this.events.onSetUpFailed(this, readFault(body));
      case MESSAGE.ACK: {
        const ack = decodeAck(id, body);
        checkAck(ack, this.outstanding);
        return this.inside(() => this.leaser.acked(this, ack));
      }
      case MESSAGE.RELEASE: {
        const { first, last } = decodeRelease(id, body);
        const batches = this.outstanding.takeRange(first, last);
        if (batches === undefined)
          throw new ProtocolError(
            `deliveries ${first} to ${last} are given back, which the worker did not have`,
          );
        this.uncommitted -= batches.length;
        return this.inside(() => this.leaser.released(batches));
      }
      case MESSAGE.RESULT:
        return this.completion?.(undefined);
      case MESSAGE.ERROR:
        return this.completion?.(readFault(body));
      case MESSAGE.START:
        // Progress, which is noted above.
        return;
      default:
        throw new ProtocolError(`a message of type ${type} came from a worker of a job`);
    }
  }

  /** Runs a callback of the leaser. An error in it is a bug in Quern: the worker is not killed for it. */
  private inside(work: () => void): void {
    contain("a worker of a job", work, this.events.onFault);
  }

  private onGone(exit: WorkerExit): void {
    const wasReady = this.state === "ready";
    this.state = "gone";
    const note = readDeliveryNote(this.identity.note);
    const ours = this.connection?.welcome.connection;
    this.connection?.close();
    this.completion?.("died");
    if (this.isStopping) return;
    if (this.connection === undefined && exit.code === TEMPORARY_FAILURE) return this.events.onDiskFull(this);
    if (!wasReady) {
      this.events.onSetUpFailed(this, diedInSetUp(exit, this.broken));
      return;
    }
    const outstanding = this.outstanding.takeAll();
    const isBusy = note?.busy === true && note.connection === ours && this.broken === undefined;
    this.events.onDeath(this, {
      inHand: isBusy && outstanding.includes(note.batch_index) ? note.batch_index : undefined,
      outstanding,
      isNoteLost: note === undefined && this.broken === undefined,
      exit,
      timedOut: this.hasTimedOut,
      broken: this.broken,
    });
  }
}

/** Counts the batches from `from` on that are adjacent in memory and fit into one frame; at least one. */
function runLength(batches: readonly LeasedBatch[], from: number): number {
  const { index, segment } = batches[from]!;
  let bytes = segment.entryBytes(index);
  let count = 1;
  for (; from + count < batches.length; count++) {
    const next = batches[from + count]!;
    if (next.segment !== segment || next.index !== index + count) break;
    bytes += segment.entryBytes(next.index);
    if (bytes > LEASE_FRAME_BYTES) break;
  }
  return count;
}
