/**
 * The gateway's connection to one replica. Bounds what is outstanding there: as many as run there at once while
 * predictions are slow, one more while they take milliseconds, a growing window while they are far below a millisecond.
 * After a death it tells which requests had begun. Streams have a bound of their own, at the worker.
 */

import { contain, reportFault } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import { PREDICTION_WINDOW_MAX } from "../contracts/limits.ts";
import type { ReplicaRoute } from "../contracts/routes.ts";
import { readDeliveryNote } from "../protocol/delivery-note.ts";
import { ProtocolError } from "../protocol/frame-rules.ts";
import {
  type AnswerHead,
  encodeGrant,
  MESSAGE,
  type StreamHead,
  type WorkerFault,
} from "../protocol/messages.ts";
import { readFault } from "../protocol/read-fault.ts";
import { readResult, readStreamHead, UnreadableHead } from "../protocol/read-heads.ts";
import { WorkerConnection } from "../protocol/worker-connection.ts";
import type { Prediction } from "./prediction.ts";

const RECONNECT_MS = 50;
const FAST_US = 1000;
/** Below this the next request is sent before the answer is back, so that the replica does not wait for it; it waits no longer than this. */
const PREFETCH_US = 10_000;
const PREFETCHED = 2;
/** A fast replica gets about this much work ahead. */
const WINDOW_WORK_US = 2000;

/** Beside CHUNK. */
const IS_ANSWER = new Set<number>([MESSAGE.RESULT, MESSAGE.ERROR, MESSAGE.BUSY, MESSAGE.STREAM, MESSAGE.END]);

export interface ReplicaClientEvents {
  /** `head` is missing where the answer is JSON with status 200. */
  onResult(prediction: Prediction, head: AnswerHead | undefined, body: Buffer): void;
  onStream(prediction: Prediction, head: StreamHead, onRoom: (bytes: number) => void): void;
  onStreamEnd(prediction: Prediction): void;
  onFault(prediction: Prediction, fault: WorkerFault): void;
  /** The answer's own bytes are wrong: it costs this request. */
  onUnreadable(prediction: Prediction, why: string): void;
  /** The replica does not take it now: it is to be sent elsewhere. */
  onBusy(prediction: Prediction): void;
  onConnected(): void;
  /** `begun` may have been worked on; `notBegun` certainly were not. */
  onLost(begun: Prediction[], notBegun: Prediction[]): void;
  /** What the replica sent is no protocol: it is of no use any more. */
  onBroken(why: string): void;
}

export class ReplicaClient {
  readonly route: ReplicaRoute;
  /** How many requests the replica runs at once. */
  parallel = 1;
  private readonly events: ReplicaClientEvents;
  /** Sent, and not answered: streams until their first piece. */
  private readonly outstanding = new Map<number, Prediction>();
  private readonly streams = new Map<number, Prediction>();
  private connection: WorkerConnection | undefined;
  private nextId = 1;
  /** How many fast predictions are sent ahead. */
  private ahead = 1;
  private predictUs = FAST_US;
  private isClosed = false;
  private busyUntilMs = 0;

  constructor(route: ReplicaRoute, parallel: number, events: ReplicaClientEvents) {
    this.route = route;
    this.parallel = parallel;
    this.events = events;
    this.connectSoon();
  }

  get load(): number {
    return this.outstanding.size + this.streams.size;
  }

  /** How many more requests it takes now. */
  get room(): number {
    if (this.connection === undefined || (this.busyUntilMs > 0 && performance.now() < this.busyUntilMs))
      return 0;
    return Math.max(this.ahead, this.parallel) - this.outstanding.size;
  }

  get isFast(): boolean {
    return this.predictUs < FAST_US;
  }

  send(prediction: Prediction): void {
    const id = this.nextId;
    this.nextId = id === 0xffff_ffff ? 1 : id + 1;
    this.outstanding.set(id, prediction);
    const { meta, body } = prediction;
    if (meta !== undefined) this.connection!.send(MESSAGE.META, id, Buffer.from(meta));
    this.connection!.sendParts(MESSAGE.PREDICT, id, body);
  }

  /** The client has left: what has not begun is not run. */
  abandon(prediction: Prediction): void {
    const id = this.idOf(prediction);
    if (id !== undefined) this.connection?.cancel(id);
  }

  has(prediction: Prediction): boolean {
    return this.idOf(prediction) !== undefined;
  }

  /** Takes no more; closes when the last answer is in. */
  retire(): void {
    this.isClosed = true;
    if (this.load === 0) this.connection?.close();
  }

  private idOf(prediction: Prediction): number | undefined {
    for (const requests of [this.outstanding, this.streams]) {
      for (const [id, other] of requests) if (other === prediction) return id;
    }
    return undefined;
  }

  private async connect(): Promise<void> {
    const events = {
      onMessage: (type: number, id: number, body: Buffer) => this.onMessage(type, id, body),
      onClose: (broken: ProtocolError | undefined) => this.closed(broken),
    };
    while (!this.isClosed && this.connection === undefined) {
      const hello = { role: "gateway", token: this.route.token, epoch: 0 } as const;
      this.connection = await WorkerConnection.open({ path: this.route.socket }, hello, events).catch(
        () => undefined,
      );
      if (this.connection === undefined) await delay(RECONNECT_MS);
    }
    if (this.isClosed) this.connection?.close();
    else this.events.onConnected();
  }

  /** What it throws ends the connection; what concerns one request costs that one only. */
  private onMessage(type: number, id: number, body: Buffer): void {
    if (type === MESSAGE.CHUNK) {
      this.streams.get(id)?.stream?.write(body);
      return;
    }
    if (!IS_ANSWER.has(type)) throw new ProtocolError(`a message of type ${type} came to a gateway`);
    const waiting = this.outstanding.get(id);
    const prediction = waiting ?? this.streams.get(id);
    if (prediction === undefined) return;
    checkOrder(type, waiting === undefined, prediction);
    this.outstanding.delete(id);
    if (type === MESSAGE.STREAM) return this.onStream(prediction, id, body);
    this.streams.delete(id);
    if (type === MESSAGE.RESULT) {
      this.onResult(prediction, body);
    } else if (type === MESSAGE.END) {
      this.events.onStreamEnd(prediction);
    } else if (type === MESSAGE.ERROR) {
      this.events.onFault(prediction, readFault(body));
    } else {
      // BUSY. The answer to a CANCEL says nothing about the replica.
      if (!prediction.isAnswered) this.busyUntilMs = performance.now() + RECONNECT_MS;
      this.events.onBusy(prediction);
    }
    if (this.isClosed && this.load === 0) this.connection?.close();
  }

  private onResult(prediction: Prediction, message: Buffer): void {
    const result = readResult(message);
    if (result instanceof UnreadableHead) return this.events.onUnreadable(prediction, result.message);
    this.learn(result.predictUs);
    this.events.onResult(prediction, result.head, result.body);
  }

  /** The id stays taken until the stream's end, also where it cannot be read: the worker answers a CANCEL. */
  private onStream(prediction: Prediction, id: number, body: Buffer): void {
    this.streams.set(id, prediction);
    const head = readStreamHead(body);
    if (head instanceof UnreadableHead) {
      this.events.onUnreadable(prediction, head.message);
      this.connection?.cancel(id);
      return;
    }
    const onRoom = (bytes: number) => this.connection?.send(MESSAGE.CREDIT, id, encodeGrant(bytes));
    this.events.onStream(prediction, head, onRoom);
  }

  private learn(predictUs: number): void {
    this.predictUs += (predictUs - this.predictUs) / 8;
    if (this.predictUs >= PREFETCH_US) this.ahead = 1;
    else if (this.predictUs >= FAST_US) this.ahead = PREFETCHED;
    else this.ahead = Math.min(PREDICTION_WINDOW_MAX, Math.ceil(WINDOW_WORK_US / (this.predictUs + 1)));
  }

  private onClose(broken: ProtocolError | undefined): void {
    const { connection } = this;
    const begunUpTo = this.begunUpTo(connection?.welcome.connection);
    this.connection = undefined;
    const begun = [...this.streams.values()];
    const notBegun: Prediction[] = [];
    for (const [id, prediction] of this.outstanding) {
      // Ids begin in any order, because a long body comes in later than a short one: those up to the highest may have begun, but
      // those whose body the worker cannot have whole.
      const mayHaveBegun = id <= begunUpTo && connection?.isSending(id) !== true;
      (mayHaveBegun ? begun : notBegun).push(prediction);
    }
    this.outstanding.clear();
    this.streams.clear();
    this.ahead = 1;
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

  /** Whatever becomes of its requests, the replica is connected to again. */
  private closed(broken: ProtocolError | undefined): void {
    try {
      this.onClose(broken);
    } finally {
      this.connection = undefined;
      this.connectLater();
    }
  }

  /**
   * The highest id that may have begun. A note that names another connection, or none, tells nothing about our requests, unless
   * nothing was ever begun. After four thousand million requests ids begin anew: the highest stays, and all count as begun.
   */
  private begunUpTo(ours: number | undefined): number {
    const note = readDeliveryNote(this.route.note);
    if (note?.connection === 0) return 0;
    return note !== undefined && note.connection === ours ? note.delivery : Number.POSITIVE_INFINITY;
  }
}

/**
 * Throws for an answer out of its order: to the request it would be none, and its client would wait for ever. A stream that was begun is
 * given back only where nobody waits for it: others have its first pieces already.
 */
function checkOrder(type: number, isStream: boolean, { isAnswered }: Prediction): void {
  const isWrong = isStream
    ? type === MESSAGE.RESULT || type === MESSAGE.STREAM || (type === MESSAGE.BUSY && !isAnswered)
    : type === MESSAGE.END;
  if (!isWrong) return;
  const when = isStream ? "inside of a stream" : "without a stream before it";
  throw new ProtocolError(`a message of type ${type} came ${when}`);
}
