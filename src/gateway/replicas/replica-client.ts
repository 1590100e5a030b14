/**
 * The gateway's connection to one replica. When the replica dies, this client reports which requests may have started.
 * The worker bounds streams. The bounds of other outstanding requests are:
 * - as many as the replica runs at once
 * - at least two while predictions take 1 to 10 ms
 * - a growing window while they take less
 */

import { contain, reportFault } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import type { ReplicaRoute } from "../../contracts/routes.ts";
import { workerAddress } from "../../protocol/connect-socket.ts";
import { readDeliveryNote, runsForMs } from "../../protocol/delivery-note.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import {
  type AnswerHead,
  encodeByteCount,
  MESSAGE,
  type StreamHead,
  type WorkerFault,
} from "../../protocol/messages.ts";
import { readFault } from "../../protocol/read-fault.ts";
import { readResult, readStreamHead, UnreadableHead } from "../../protocol/read-heads.ts";
import { WorkerConnection } from "../../protocol/worker-connection.ts";
import type { PredictionRequest, Wishes } from "../answers/prediction-request.ts";
import type { StreamedAnswer } from "../answers/streamed-answer.ts";
import { PredictionWindow } from "./prediction-window.ts";
import { SentRequests } from "./sent-requests.ts";

const RECONNECT_MS = 50;

/** Besides CHUNK. */
const IS_ANSWER = new Set<number>([MESSAGE.RESULT, MESSAGE.ERROR, MESSAGE.BUSY, MESSAGE.STREAM, MESSAGE.END]);

export interface ReplicaClientEvents {
  /** `head` is missing if the response is JSON with status 200. */
  onResult(prediction: PredictionRequest, head: AnswerHead | undefined, body: Buffer): void;
  onStream(prediction: PredictionRequest, head: StreamHead, onTaken: (bytes: number) => void): void;
  onStreamEnd(prediction: PredictionRequest): void;
  onFault(prediction: PredictionRequest, fault: WorkerFault): void;
  /** The bytes of the response are wrong: only this request fails. */
  onUnreadable(prediction: PredictionRequest, why: string): void;
  /** The replica does not accept the request now: it must be sent elsewhere. */
  onBusy(prediction: PredictionRequest): void;
  onConnected(): void;
  /** `begun` may have started; `notBegun` certainly did not. */
  onLost(begun: PredictionRequest[], notBegun: PredictionRequest[]): void;
  /** The replica broke the protocol, so nothing that it sends can be believed. */
  onBroken(why: string): void;
}

export class ReplicaClient {
  readonly route: ReplicaRoute;
  /** How many requests the replica runs at once. */
  parallel = 1;
  private readonly events: ReplicaClientEvents;
  private readonly sent = new SentRequests();
  private readonly window = new PredictionWindow();
  private connection: WorkerConnection | undefined;
  private isClosed = false;
  private busyUntilMs = 0;
  /** Since when its present call may run, for a replica without a note: since its last answer, or its first request. */
  private callSinceMs = 0;

  constructor(route: ReplicaRoute, parallel: number, events: ReplicaClientEvents) {
    this.route = route;
    this.parallel = parallel;
    this.events = events;
    this.connectSoon();
  }

  get load(): number {
    return this.sent.count;
  }

  /** How many more requests the replica accepts now. */
  get freeSlots(): number {
    if (this.connection === undefined || (this.busyUntilMs > 0 && performance.now() < this.busyUntilMs))
      return 0;
    return Math.max(this.window.size, this.parallel) - this.sent.outstandingCount;
  }

  get isFast(): boolean {
    return this.window.isFast;
  }

  /** How long a prediction takes here. */
  get predictMs(): number {
    return this.window.predictMs;
  }

  /** How long the call of user code that runs there has run, for a replica that runs one at a time; 0 if none runs. */
  get runsForMs(): number {
    if (this.route.address !== undefined) return this.load === 0 ? 0 : performance.now() - this.callSinceMs;
    return runsForMs(readDeliveryNote(this.route.note));
  }

  /** `wishes` says what the replica takes beside the payload. */
  send(prediction: PredictionRequest, wishes: Wishes): void {
    if (this.route.address !== undefined && this.load === 0) this.callSinceMs = performance.now();
    const meta = prediction.head?.metaFor(wishes);
    const id = this.sent.add(prediction);
    const { requestId, body } = prediction;
    this.connection!.sendTextBefore(MESSAGE.REQUEST_ID, id, requestId);
    if (meta !== undefined) this.connection!.send(MESSAGE.META, id, Buffer.from(meta));
    this.connection!.sendParts(MESSAGE.PREDICT, id, body);
  }

  /** The client has left: a request that has not started will not run. */
  abandon(prediction: PredictionRequest): void {
    const id = this.sent.idOf(prediction);
    if (id !== undefined) this.connection?.cancel(id);
  }

  has(prediction: PredictionRequest): boolean {
    return this.sent.idOf(prediction) !== undefined;
  }

  mayHaveBegun(prediction: PredictionRequest): boolean {
    const id = this.sent.idOf(prediction);
    return id !== undefined && id <= this.begunUpTo(this.connection?.welcome.connection);
  }

  /** Accepts no more requests; closes after the last response. */
  retire(): void {
    this.isClosed = true;
    if (this.load === 0) this.connection?.close();
  }

  private async connect(): Promise<void> {
    const events = {
      expects: (type: number, id: number) => this.sent.expects(type, id),
      onMessage: (type: number, id: number, body: Buffer) => this.onMessage(type, id, body),
      onLongChunk: (id: number, frames: readonly Buffer[]) => this.streamForChunk(id)?.writeLong(frames),
      onClose: (broken: ProtocolError | undefined) => this.closed(broken),
    };
    while (!this.isClosed && this.connection === undefined) {
      const hello = { role: "gateway", token: this.route.token, epoch: 0 } as const;
      this.connection = await WorkerConnection.open(workerAddress(this.route), hello, events).catch(
        () => undefined,
      );
      if (this.connection === undefined) await delay(RECONNECT_MS);
    }
    if (this.isClosed) this.connection?.close();
    else this.events.onConnected();
  }

  /** An exception ends the connection. A fault in one request fails that request only. */
  private onMessage(type: number, id: number, body: Buffer): void {
    if (type === MESSAGE.CHUNK) return this.streamForChunk(id)?.write(body);
    if (this.route.address !== undefined) this.callSinceMs = performance.now();
    if (!IS_ANSWER.has(type)) throw new ProtocolError(`a message of type ${type} came to a gateway`);
    const prediction = this.sent.replied(type, id);
    if (prediction === undefined) return;
    if (type === MESSAGE.STREAM) return this.onStream(prediction, id, body);
    if (type === MESSAGE.RESULT) {
      this.onResult(prediction, body);
    } else if (type === MESSAGE.END) {
      this.events.onStreamEnd(prediction);
    } else if (type === MESSAGE.ERROR) {
      this.events.onFault(prediction, readFault(body));
    } else {
      // BUSY. As the reply to a CANCEL it says nothing about the replica's load.
      if (!prediction.isAnswered) this.busyUntilMs = performance.now() + RECONNECT_MS;
      this.events.onBusy(prediction);
    }
    if (this.isClosed && this.load === 0) this.connection?.close();
  }

  /** Undefined if nobody reads the stream: the piece is dropped. */
  private streamForChunk(id: number): StreamedAnswer | undefined {
    const stream = this.sent.streamOf(id)?.stream;
    if (stream?.isPastCredit === true)
      throw new ProtocolError(`a piece of the stream ${id} came without credit`);
    return stream;
  }

  private onResult(prediction: PredictionRequest, message: Buffer): void {
    const result = readResult(message);
    if (result instanceof UnreadableHead) return this.events.onUnreadable(prediction, result.message);
    this.window.learn(result.predictUs);
    this.events.onResult(prediction, result.head, result.body);
  }

  /** The id stays in use until the stream ends, even if its head cannot be read: the worker replies to a CANCEL. */
  private onStream(prediction: PredictionRequest, id: number, body: Buffer): void {
    const head = readStreamHead(body);
    if (head instanceof UnreadableHead) {
      this.events.onUnreadable(prediction, head.message);
      this.connection?.cancel(id);
      return;
    }
    const onTaken = (bytes: number) => this.connection?.send(MESSAGE.CREDIT, id, encodeByteCount(bytes));
    this.events.onStream(prediction, head, onTaken);
  }

  private onClose(broken: ProtocolError | undefined): void {
    const { connection } = this;
    const begunUpTo = this.begunUpTo(connection?.welcome.connection);
    this.connection = undefined;
    const { begun, notBegun } = this.sent.lose(begunUpTo, connection);
    this.window.shrink();
    if (broken !== undefined) this.events.onBroken(broken.message);
    this.events.onLost(begun, notBegun);
  }

  private connectSoon(): void {
    contain(
      "the connection to a replica",
      () => this.connect(),
      (error, unit) => {
        reportFault(error, unit);
        if (this.connection === undefined) this.connectLater();
      },
    );
  }

  private connectLater(): void {
    if (!this.isClosed) setTimeout(() => this.connectSoon(), RECONNECT_MS).unref();
  }

  /** Reconnects to the replica, whatever happens to its requests. */
  private closed(broken: ProtocolError | undefined): void {
    try {
      this.onClose(broken);
    } finally {
      this.connection = undefined;
      this.connectLater();
    }
  }

  /**
   * The highest id that may have started. A note of another connection, or no note, says nothing about our requests,
   * unless no request ever started. After 2^32 - 1 requests ids begin again; the note keeps the highest, so all count
   * as started.
   */
  private begunUpTo(ours: number | undefined): number {
    if (this.route.address !== undefined) return Number.POSITIVE_INFINITY;
    const note = readDeliveryNote(this.route.note);
    if (note?.connection === 0) return 0;
    return note !== undefined && note.connection === ours ? note.delivery : Number.POSITIVE_INFINITY;
  }
}
