/**
 * One replica of a real-time API: a worker process and the controller's connection to it. Requests do not use this
 * connection.
 */
import { contain } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { DURATION_MS_MAX } from "../../contracts/limits/configuration.ts";
import type { RunningWorker, WorkerExit, WorkerIdentity } from "../../engine/engine.ts";
import { ageMsOf, type Lifetime, StartWatch } from "../../engine/lifetime.ts";
import type { Reservation } from "../../engine/reservations.ts";
import { readDeliveryNote } from "../../protocol/delivery-note.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import { ConnectionRefused } from "../../protocol/handshake.ts";
import { mayListen } from "../../protocol/may-listen.ts";
import { decodeRecycle, type Init, MESSAGE, type Ready, type WorkerFault } from "../../protocol/messages.ts";
import { readFault } from "../../protocol/read-fault.ts";
import { readReady, SetUpReport } from "../../protocol/set-up-report.ts";
import { WorkerConnection, type WorkerConnectionEvents } from "../../protocol/worker-connection.ts";

const CONNECT_RETRY_MS = 5;
/** No limit of its own: a worker responds only after `__init__`, and StartWatch limits that. */
const HANDSHAKE_MS = DURATION_MS_MAX;

/**
 * How long a draining replica may take. Gateways end requests past their deadline; a stream may last as long as its
 * client reads.
 */
export const DRAIN_GRACE_MS = 15 * 60_000;
/** How long a worker that a former controller started may take to say that it is ready, if it has not predicted yet. */
const ADOPTED_MS = 60_000;

export interface ReplicaEvents {
  onReady(replica: Replica): void;
  onFailed(replica: Replica, fault: WorkerFault): void;
  /** It has been starting for so many seconds. */
  onLongStart(replica: Replica, seconds: number): void;
  /** It serves, and `wear` has changed. */
  onWear(replica: Replica): void;
  /** `wasServing`: it died while it was ready, and neither during its set-up nor on request. */
  onGone(replica: Replica, exit: WorkerExit, wasServing: boolean): void;
  /** An error that is reported nowhere else. */
  onFault(error: Error): void;
}

export class Replica {
  readonly api_name: string;
  readonly predictor_id: string;
  state: "initializing" | "ready" | "draining" | "gone" = "initializing";
  wants: string[] = [];
  isAsync = false;
  /** The replica was asked to end. */
  isLeaving = false;
  /** Its compute reservation; undefined once another replica has taken it over. */
  reservation: Reservation | undefined;
  /** It has reported why it cannot be set up. */
  hasFailed = false;
  /** It may have received requests. */
  hasServed = false;
  /**
   * `wearing`: it will soon have reached `max_requests`, so its successor starts. `worn`: it has reached that or
   * `max_age`, and ends once a successor serves.
   */
  wear: "fresh" | "wearing" | "worn" = "fresh";
  private drainEndMs = Number.POSITIVE_INFINITY;
  private drainTimer: NodeJS.Timeout | undefined;
  /** When its process started, on the clock of `performance.now()`. */
  readonly startedMs: number;
  private readonly isAdopted: boolean;
  private readonly worker: RunningWorker;
  private readonly events: ReplicaEvents;
  private readonly start: StartWatch;
  private readonly setUp = new SetUpReport();
  private connection: WorkerConnection | undefined;

  /** `isAdopted`: a former controller has started it, and it may have served for long. */
  constructor(
    worker: RunningWorker,
    api: {
      api_name: string;
      predictor_id: string;
      reservation: Reservation;
      lifetime: Lifetime;
      isAdopted: boolean;
    },
    events: ReplicaEvents,
  ) {
    this.worker = worker;
    this.api_name = api.api_name;
    this.predictor_id = api.predictor_id;
    this.reservation = api.reservation;
    this.isAdopted = api.isAdopted;
    this.events = events;
    const ageMs = ageMsOf(worker.identity);
    this.startedMs = performance.now() - ageMs;
    const watching = {
      onLong: (seconds: number) => events.onLongStart(this, seconds),
      onTimeout: (fault: WorkerFault) => this.startTimedOut(fault),
    };
    this.start = new StartWatch(api.lifetime.startup, ageMs, watching, api.isAdopted ? ADOPTED_MS : 0);
    // Once it has predicted it has started. While it is busy it does not say so.
    if (api.isAdopted && hasPredicted(this.identity)) this.start.end();
    this.wearOutAt(api.lifetime.maxAgeMs, ageMs);
    contain("the end of a replica", async () => this.gone(await worker.exited), events.onFault);
  }

  /**
   * A former controller has started it, and it has not said yet whether it serves or drains. To retire it now would be
   * to kill it, with its requests.
   */
  get isUnknown(): boolean {
    return this.isAdopted && this.state === "initializing" && this.connection === undefined;
  }

  get identity() {
    return this.worker.identity;
  }

  /** Connects and sets the worker up, or finds that a former controller has done so. */
  async connect(init: Init, epoch: number): Promise<void> {
    const hello = { role: "controller", token: this.identity.token, epoch } as const;
    const events = {
      expects: () => false,
      onMessage: (type: number, _id: number, body: Buffer) => this.onMessage(type, body),
      onClose: () => this.worker.kill(),
    };
    while (this.state === "initializing" && this.connection === undefined) {
      if (mayListen(this.worker.address)) this.connection = await this.tryToConnect(hello, events);
      if (this.connection === undefined) await delay(CONNECT_RETRY_MS);
    }
    const welcome = this.connection?.welcome;
    if (welcome?.state === "new") this.connection!.sendJson(MESSAGE.INIT, 0, init);
    // A former controller has sent DRAIN. It still has requests.
    if (welcome?.state === "draining") this.drain(DRAIN_GRACE_MS);
    if (welcome?.state !== "ready") return;
    this.setUp.take();
    this.ready(welcome);
  }

  private tryToConnect(
    hello: Parameters<typeof WorkerConnection.open>[1],
    events: WorkerConnectionEvents,
  ): Promise<WorkerConnection | undefined> {
    return WorkerConnection.open(this.worker.address, hello, events, HANDSHAKE_MS).catch((error: unknown) => {
      // Another release's worker, or one that breaks the protocol: a retry would change nothing.
      const isOther = error instanceof ConnectionRefused && error.code === "protocol";
      if (isOther || error instanceof ProtocolError) this.worker.kill();
      return undefined;
    });
  }

  /**
   * Stops new requests. The replica finishes those that it has, then exits. It is killed after `graceMs`; if it drains
   * already, at whichever end comes first.
   */
  drain(graceMs: number): void {
    if (this.state === "gone") return;
    this.killAfter(graceMs);
    if (this.state === "draining") return;
    this.state = "draining";
    this.isLeaving = true;
    if (this.connection === undefined) this.worker.kill();
    else this.connection.sendJson(MESSAGE.DRAIN, 0, {});
  }

  private killAfter(graceMs: number): void {
    const endMs = performance.now() + graceMs;
    if (endMs >= this.drainEndMs) return;
    this.drainEndMs = endMs;
    clearTimeout(this.drainTimer);
    this.drainTimer = setTimeout(() => this.worker.kill(), graceMs).unref();
  }

  kill(): void {
    this.worker.kill();
  }

  /** Keeps the process running for the next controller. */
  detach(): void {
    this.state = "gone";
    this.start.end();
    this.connection?.detach();
  }

  private onMessage(type: number, body: Buffer): void {
    if (type === MESSAGE.READY || type === MESSAGE.INIT_FAILED) this.setUp.take();
    if (type === MESSAGE.READY) this.ready(readReady(body));
    if (type === MESSAGE.INIT_FAILED) this.failed(readFault(body));
    if (type === MESSAGE.RECYCLE) this.worn(decodeRecycle(body) === 0 ? "worn" : "wearing");
  }

  private failed(fault: WorkerFault): void {
    this.hasFailed = true;
    this.events.onFailed(this, fault);
  }

  private startTimedOut(fault: WorkerFault): void {
    this.isLeaving = true;
    this.failed(fault);
    this.worker.kill();
  }

  private wearOutAt(maxAgeMs: number | undefined, ageMs: number): void {
    if (maxAgeMs === undefined) return;
    const timer = setTimeout(() => this.worn("worn"), Math.max(0, maxAgeMs - ageMs)).unref();
    contain("the age of a replica", () => this.worker.exited.then(() => clearTimeout(timer)));
  }

  private worn(wear: "wearing" | "worn"): void {
    // A worker may repeat RECYCLE at will; each change publishes the routes.
    if (this.wear === "worn" || this.wear === wear) return;
    this.wear = wear;
    if (this.state === "ready") this.events.onWear(this);
  }

  private ready({ wants, is_async }: Pick<Ready, "wants" | "is_async">): void {
    if (this.state !== "initializing") return;
    this.state = "ready";
    this.start.end();
    this.hasServed = true;
    this.wants = wants;
    this.isAsync = is_async;
    this.events.onReady(this);
    if (this.wear !== "fresh") this.events.onWear(this);
  }

  private gone(exit: WorkerExit): void {
    if (this.state === "gone") return;
    const wasServing = this.state === "ready";
    this.state = "gone";
    this.start.end();
    this.connection?.close();
    this.events.onGone(this, exit, wasServing);
  }
}

function hasPredicted({ note }: WorkerIdentity): boolean {
  return (readDeliveryNote(note)?.connection ?? 0) > 0;
}
