/**
 * One replica of a real-time API that runs in a pod: the controller's connection to its worker. The pod's launcher
 * starts the worker again after a death (docs/pods.md), so a replica may serve, be set up, and serve again. The cluster
 * decides when the pod ends. Requests do not use this connection.
 */

import { contain } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { type Lifetime, START_TIMEOUT, StartWatch } from "../../engine/lifetime.ts";
import type { LauncherFailure } from "../../kubernetes/pods/launcher.ts";
import type { TlsAddress } from "../../protocol/connect-socket.ts";
import { ConnectionRefused } from "../../protocol/handshake.ts";
import { decodeRecycle, type Init, MESSAGE, type Ready, type WorkerFault } from "../../protocol/messages.ts";
import { describeFault, readFault } from "../../protocol/read-fault.ts";
import { readReady, SetUpReport } from "../../protocol/set-up-report.ts";
import { WorkerConnection } from "../../protocol/worker-connection.ts";
import type { FailureKind, ServingReplica } from "../serving/api-replicas.ts";
import { type Wear, WorkerWear } from "./worker-wear.ts";

/** A worker that is not there yet answers at once that it is not. Half of the pause is chance. */
const CONNECT_PAUSE_MS = 300;
/** After another controller, or another token, was preferred: the pod is replaced soon, or this controller is. */
const REFUSED_PAUSE_MS = 5_000;

export interface PodReplicaEvents {
  onReady(replica: PodReplica): void;
  /** It has reported why it cannot be set up, or took too long. */
  onFailed(replica: PodReplica, fault: WorkerFault): void;
  /** It serves, and `wear` has changed. */
  onWear(replica: PodReplica): void;
  /** Its worker is gone, and the pod is not leaving. */
  onGone(replica: PodReplica, gone: GoneWorker): void;
  onLongStart(replica: PodReplica, seconds: number): void;
}

/** A worker whose connection has ended. */
export interface GoneWorker {
  /** Its process, in its container. */
  pid: number;
  wasServing: boolean;
  /** For how long, in milliseconds. */
  servedMs: number;
}

/** What a replica needs of its API's version. */
export interface PodStart {
  /** The INIT of the pod's version; undefined if the version is gone. */
  init: () => Promise<Init | undefined>;
  epoch: number;
  lifetime: Lifetime;
}

/** Whose pod it is, and how its worker proves who it is. */
export interface PodIdentity {
  name: string;
  uid: string;
  predictor_id: string;
  token: string;
  ca: string;
  serverName: string;
  port: number;
  startedMs: number;
}

export class PodReplica implements ServingReplica {
  state: ServingReplica["state"] = "initializing";
  wants: string[] = [];
  isAsync = false;
  readonly isUnknown = false;
  /** Why its worker is not ready, until it is. */
  trouble: { kind: FailureKind; message: string } | undefined;
  /** Why its pod cannot run a worker yet, as the launcher says while nobody listens on the worker's port. */
  unprepared: LauncherFailure | undefined;
  /** The cluster takes it before other pods of its API. */
  isFirstToGo = false;
  readonly pod: PodIdentity;
  private readonly wearing: WorkerWear;
  private readonly start: PodStart;
  private readonly events: PodReplicaEvents;
  private host: string | undefined;
  private connection: WorkerConnection | undefined;
  private watch: StartWatch | undefined;
  private readyMs = 0;
  private report = new SetUpReport();

  constructor(pod: PodIdentity, start: PodStart, events: PodReplicaEvents) {
    this.pod = pod;
    this.start = start;
    this.events = events;
    this.wearing = new WorkerWear(start.lifetime.maxAgeMs, () => {
      if (this.state === "ready") events.onWear(this);
    });
  }

  /** How close its worker is to `max_requests` and `max_age`. */
  get wear(): Wear {
    return this.wearing.state;
  }

  get identity() {
    const { name, token } = this.pod;
    return { worker_id: name, token, pid: 0, process_start: "", socket: "", note: "", instance_id: "" };
  }

  get predictor_id(): string {
    return this.pod.predictor_id;
  }

  get startedMs(): number {
    return this.pod.startedMs;
  }

  /** Undefined before the pod has one. */
  get address() {
    const { ca, serverName, port } = this.pod;
    return this.host === undefined ? undefined : { host: this.host, port, server_name: serverName, ca };
  }

  get isConnected(): boolean {
    return this.connection !== undefined;
  }

  /** For how long it has served, in milliseconds. */
  get servedMs(): number {
    return performance.now() - this.readyMs;
  }

  /** The pod has an address: connects, and again whenever its worker was replaced, until `end`. */
  follow(host: string): void {
    if (this.host !== undefined) return;
    this.host = host;
    contain(`a replica in pod ${this.pod.name}`, async () => {
      while (this.isPresent) await delay(await this.connectOnce());
    });
  }

  /** The pod was asked to end. Its worker finishes what it has. */
  leave(): void {
    if (this.isPresent) this.state = "draining";
    this.watch?.end();
    this.wearing.end();
  }

  /** The pod is gone, or this controller goes. */
  end(): void {
    this.state = "gone";
    this.watch?.end();
    this.wearing.end();
    this.connection?.close();
  }

  private get isPresent(): boolean {
    return this.state === "initializing" || this.state === "ready";
  }

  /** Resolves when the connection has ended, to the pause before the next one. */
  private async connectOnce(): Promise<number> {
    const hello = { role: "controller", token: this.pod.token, epoch: this.start.epoch } as const;
    let closed = () => {};
    const end = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const events = {
      expects: () => false,
      onMessage: (type: number, _id: number, body: Buffer) => this.onMessage(type, body),
      onClose: () => closed(),
    };
    try {
      this.connection = await WorkerConnection.open(this.workerAddress, hello, events);
    } catch (error) {
      return error instanceof ConnectionRefused ? REFUSED_PAUSE_MS : CONNECT_PAUSE_MS * (0.5 + Math.random());
    }
    if (this.state === "gone") this.connection.close();
    await this.setUp(this.connection);
    await end;
    this.closed(this.connection.welcome.pid);
    return 0;
  }

  private get workerAddress(): TlsAddress {
    const { ca, serverName, port } = this.pod;
    return { host: this.host!, port, tls: { ca }, serverName };
  }

  private async setUp(connection: WorkerConnection): Promise<void> {
    const { welcome } = connection;
    this.unprepared = undefined;
    this.report = new SetUpReport();
    // One that a former controller has set up may be as old as its pod.
    this.wearing.begin(welcome.state === "ready" ? performance.now() - this.pod.startedMs : 0);
    if (welcome.state === "ready") return this.ready(welcome);
    if (welcome.state === "draining" || welcome.state === "failed") return;
    this.watchStart();
    if (welcome.state !== "new") return;
    const init = await this.start.init();
    if (init === undefined) connection.close();
    else connection.sendJson(MESSAGE.INIT, 0, init);
  }

  private watchStart(): void {
    if (!this.isPresent) return;
    this.watch?.end();
    this.watch = new StartWatch(this.start.lifetime.startup, 0, {
      onLong: (seconds) => this.events.onLongStart(this, seconds),
      onTimeout: (fault) => this.failed(fault),
    });
  }

  private onMessage(type: number, body: Buffer): void {
    if (type === MESSAGE.READY || type === MESSAGE.INIT_FAILED) this.report.take();
    if (type === MESSAGE.READY) this.ready(readReady(body));
    if (type === MESSAGE.INIT_FAILED) this.failed(readFault(body));
    if (type === MESSAGE.RECYCLE) this.wearing.asks(decodeRecycle(body));
  }

  private ready({ wants, is_async }: Pick<Ready, "wants" | "is_async">): void {
    this.watch?.end();
    if (this.state !== "initializing") return;
    this.state = "ready";
    this.readyMs = performance.now();
    this.trouble = undefined;
    this.wants = wants;
    this.isAsync = is_async;
    this.events.onReady(this);
    if (this.wear !== "fresh") this.events.onWear(this);
  }

  private failed(fault: WorkerFault): void {
    this.watch?.end();
    this.trouble = {
      kind: fault.type === START_TIMEOUT ? "timeout" : "init",
      message: describeFault(fault),
    };
    this.events.onFailed(this, fault);
  }

  private closed(pid: number): void {
    this.connection = undefined;
    this.watch?.end();
    if (!this.isPresent) return;
    const wasServing = this.state === "ready";
    this.state = "initializing";
    this.wearing.end();
    this.events.onGone(this, { pid, wasServing, servedMs: this.servedMs });
  }
}
