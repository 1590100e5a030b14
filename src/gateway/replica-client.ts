/**
 * The gateway's connection to one replica. Bounds what is outstanding there: one while predictions are slow, a growing
 * window while they are far below a millisecond. After a death it tells which requests had begun.
 */

import { delay } from "../base/clock.ts";
import { PREDICTION_WINDOW_MAX } from "../contracts/limits.ts";
import type { ReplicaRoute } from "../contracts/routes.ts";
import { readDeliveryNote } from "../protocol/delivery-note.ts";
import { decodeResult, MESSAGE, type WorkerFault } from "../protocol/messages.ts";
import { WorkerConnection } from "../protocol/worker-connection.ts";
import type { Prediction } from "./prediction.ts";

const RECONNECT_MS = 50;
const FAST_US = 1000;
/** A fast replica gets about this much work ahead. */
const WINDOW_WORK_US = 2000;

export interface ReplicaClientEvents {
  onResult(client: ReplicaClient, prediction: Prediction, result: Buffer): void;
  onFault(client: ReplicaClient, prediction: Prediction, fault: WorkerFault): void;
  /** The replica does not take it now: it is to be sent elsewhere. */
  onBusy(client: ReplicaClient, prediction: Prediction): void;
  onConnected(client: ReplicaClient): void;
  /** `begun` may have been worked on; `notBegun` certainly were not. */
  onLost(client: ReplicaClient, begun: Prediction[], notBegun: Prediction[]): void;
}

export class ReplicaClient {
  readonly route: ReplicaRoute;
  private readonly events: ReplicaClientEvents;
  private readonly outstanding = new Map<number, Prediction>();
  private connection: WorkerConnection | undefined;
  private nextId = 1;
  private window = 1;
  private predictUs = FAST_US;
  private isClosed = false;
  private busyUntilMs = 0;

  constructor(route: ReplicaRoute, events: ReplicaClientEvents) {
    this.route = route;
    this.events = events;
    void this.connect();
  }

  get load(): number {
    return this.outstanding.size;
  }

  /** How many more requests it takes now. */
  get room(): number {
    if (this.connection === undefined || (this.busyUntilMs > 0 && performance.now() < this.busyUntilMs))
      return 0;
    return this.window - this.outstanding.size;
  }

  get isFast(): boolean {
    return this.window > 1;
  }

  send(prediction: Prediction): void {
    const id = this.nextId;
    this.nextId = id === 0xffff_ffff ? 1 : id + 1;
    this.outstanding.set(id, prediction);
    this.connection!.send(MESSAGE.PREDICT, id, prediction.body);
  }

  /** The client has left: what has not begun is not run. */
  abandon(prediction: Prediction): void {
    for (const [id, other] of this.outstanding) {
      if (other !== prediction) continue;
      this.connection?.cancel(id);
      return;
    }
  }

  has(prediction: Prediction): boolean {
    for (const other of this.outstanding.values()) if (other === prediction) return true;
    return false;
  }

  /** The route is gone; what is outstanding is still answered. */
  retire(): void {
    this.isClosed = true;
    if (this.outstanding.size === 0) this.connection?.close();
  }

  private async connect(): Promise<void> {
    const events = {
      onMessage: (type: number, id: number, body: Buffer) => this.onMessage(type, id, body),
      onClose: () => this.onClose(),
    };
    while (!this.isClosed && this.connection === undefined) {
      const hello = { role: "gateway", token: this.route.token, epoch: 0 } as const;
      this.connection = await WorkerConnection.open({ path: this.route.socket }, hello, events).catch(
        () => undefined,
      );
      if (this.connection === undefined) await delay(RECONNECT_MS);
    }
    if (this.isClosed) this.connection?.close();
    else this.events.onConnected(this);
  }

  private onMessage(type: number, id: number, body: Buffer): void {
    const prediction = this.outstanding.get(id);
    if (prediction === undefined) return;
    this.outstanding.delete(id);
    if (type === MESSAGE.RESULT) {
      const { predictUs, prediction: result } = decodeResult(body);
      this.learn(predictUs);
      this.events.onResult(this, prediction, result);
    } else if (type === MESSAGE.ERROR) {
      this.events.onFault(this, prediction, JSON.parse(body.toString()) as WorkerFault);
    } else if (type === MESSAGE.BUSY) {
      // The answer to a CANCEL says nothing about the replica.
      if (!prediction.isAnswered) this.busyUntilMs = performance.now() + RECONNECT_MS;
      this.events.onBusy(this, prediction);
    }
    if (this.isClosed && this.outstanding.size === 0) this.connection?.close();
  }

  private learn(predictUs: number): void {
    this.predictUs += (predictUs - this.predictUs) / 8;
    this.window =
      this.predictUs >= FAST_US
        ? 1
        : Math.min(PREDICTION_WINDOW_MAX, Math.ceil(WINDOW_WORK_US / (this.predictUs + 1)));
  }

  private onClose(): void {
    const ours = this.connection?.welcome.connection;
    this.connection = undefined;
    const note = readDeliveryNote(this.route.note);
    const begun: Prediction[] = [];
    const notBegun: Prediction[] = [];
    // A note that names another connection, or none, tells nothing about our requests, unless nothing was ever begun.
    const begunUpTo =
      note === undefined
        ? Number.POSITIVE_INFINITY
        : note.connection === 0
          ? 0
          : note.connection === ours
            ? note.delivery
            : Number.POSITIVE_INFINITY;
    for (const [id, prediction] of this.outstanding) (id <= begunUpTo ? begun : notBegun).push(prediction);
    this.outstanding.clear();
    this.window = 1;
    this.events.onLost(this, begun, notBegun);
    if (!this.isClosed) setTimeout(() => void this.connect(), RECONNECT_MS).unref();
  }
}
