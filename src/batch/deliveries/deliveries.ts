/**
 * The batches at one worker: what it has, and how many more it may get. Nothing that it reports about them is believed
 * unless it can be true.
 */
import { CREDIT_BYTES_MAX } from "../../contracts/limits/jobs.ts";
import { type Ack, decodeAck, type RowsSize } from "../../protocol/ack.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import { decodeRelease, MESSAGE } from "../../protocol/messages.ts";
import type { WorkerConnection } from "../../protocol/worker-connection.ts";
import type { RowsPlace } from "../rows/rows-place.ts";
import { checkAck } from "./check-ack.ts";
import { Credit } from "./credit.ts";
import { type LeasedBatch, runLength } from "./lease-runs.ts";
import { Outstanding } from "./outstanding.ts";

/** The rows that one worker sends, in the order of its deliveries. */
export interface RowsOfWorker {
  /** Bytes that came and are of no batch yet. */
  readonly untaken: number;
  /** Takes the next bytes. Throws if the worker may not send so many. */
  append(bytes: Buffer): void;
  /** The place of the next batch's rows, which have come. */
  take(size: RowsSize): RowsPlace;
  /** The worker is gone. */
  end(): void;
}

/** Opens the rows of a worker, which may send as many bytes more as `onWritten` says. */
export type OpenRows = (onWritten: (bytes: number) => void) => RowsOfWorker;

export class Deliveries {
  readonly outstanding = new Outstanding();
  readonly credit = new Credit();
  /** Leased, without those that came back. */
  leased = 0;
  /** Leased and not yet committed; credit returns only with the commit. */
  uncommitted = 0;
  /** When the first one was leased (monotonic milliseconds); undefined before that. */
  firstMs: number | undefined;
  private idleMs = 0;
  /** Of its last answer. */
  private answeredMs = 0;
  /** What the worker sends of the job's output; undefined if the job has none. */
  readonly rows: RowsOfWorker | undefined;

  constructor(rows: RowsOfWorker | undefined) {
    this.rows = rows;
  }

  get freeCredit(): number {
    return this.outstanding.bytes >= CREDIT_BYTES_MAX ? 0 : this.credit.batches - this.uncommitted;
  }

  /** Whether everything that it got is committed. */
  get isIdle(): boolean {
    return this.outstanding.count === 0 && this.uncommitted === 0;
  }

  /** How much of its time since its first batch it had none; undefined before that. */
  idleShare(nowMs: number): number | undefined {
    if (this.firstMs === undefined) return undefined;
    const idleMs = this.idleMs + (this.outstanding.count === 0 ? nowMs - this.answeredMs : 0);
    return idleMs / Math.max(1, nowMs - this.firstMs);
  }

  /** Sends batches in as few frames as possible. Adjacent batches of a segment share a frame, without a copy. */
  lease(batches: readonly LeasedBatch[], connection: WorkerConnection): void {
    const nowMs = performance.now();
    if (this.firstMs === undefined) this.firstMs = nowMs;
    else if (this.outstanding.count === 0) this.idleMs += nowMs - this.answeredMs;
    this.uncommitted += batches.length;
    this.leased += batches.length;
    for (let from = 0; from < batches.length; ) {
      const { index, segment } = batches[from]!;
      const count = runLength(batches, from);
      connection.send(segment.message ?? MESSAGE.LEASE, this.outstanding.next, segment.entries(index, count));
      for (let batch = index; batch < index + count; batch++)
        this.outstanding.push(batch, segment.entryBytes(batch));
      from += count;
    }
  }

  /** Reads an ACK. Its batches stay outstanding until they are settled. Throws if it cannot be true. */
  acked(id: number, body: Buffer): Ack {
    this.answeredMs = performance.now();
    const ack = decodeAck(id, body, this.rows !== undefined);
    checkAck(ack, this.outstanding, this.rows?.untaken ?? 0);
    return ack;
  }

  /** Takes rows of the job's output. Throws if the worker may not send them. */
  wrote(bytes: Buffer): void {
    if (this.rows === undefined) throw new ProtocolError("output came from a worker whose job has none");
    this.rows.append(bytes);
  }

  /** Reads a RELEASE and takes its batches. Throws if the worker did not have them. */
  released(id: number, body: Buffer): number[] {
    this.answeredMs = performance.now();
    const { first, last } = decodeRelease(id, body);
    const batches = this.outstanding.takeRange(first, last);
    if (batches === undefined)
      throw new ProtocolError(
        `deliveries ${first} to ${last} are released, but the worker did not have them`,
      );
    this.uncommitted -= batches.length;
    this.leased -= batches.length;
    return batches;
  }
}
