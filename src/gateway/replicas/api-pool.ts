/**
 * The replicas of one real-time API, and a bounded queue in front of them. While predictions are fast, one replica is
 * filled before the next, because spreading costs several times the CPU. Otherwise the least loaded replica is chosen.
 */
import { contain } from "../../base/boundary.ts";
import { FewEachTurn, TimeSlices } from "../../base/loop/turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { LOST_AT_ONCE_MAX } from "../../contracts/limits/predictions.ts";
import type { ApiRoute, ReplicaRoute } from "../../contracts/routes.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { faultToError } from "../answers/fault-to-error.ts";
import type { PredictionRequest } from "../answers/prediction-request.ts";
import { OpenRequests, type ReplicaEnds } from "./open-requests.ts";
import { apiDeleted, noReplicaStarts, queueFull, workerDied } from "./pool-errors.ts";
import { ReplicaClient } from "./replica-client.ts";
import { RequestTally } from "./tally.ts";
import { WaitingRequests } from "./waiting-requests.ts";

/** How long to wait before a busy replica is tried again. */
const RETRY_MS = 60;
/** Of all pools. The metadata of a long head take a millisecond, and thousands of requests may wait for a replica. */
const META_SLICES = new TimeSlices(4);

export interface ApiPoolDeps extends ReplicaEnds {
  /** A request came while there was no replica: one must start. */
  wake: (api: string) => void;
  /** A replica broke the worker protocol. */
  broken: (replica: ReplicaRoute, why: string) => void;
  /** A request got a deadline. */
  onDeadline: () => void;
}

export class ApiPool {
  route: ApiRoute;
  readonly tally = new RequestTally();
  private readonly deps: ApiPoolDeps;
  private clients: ReplicaClient[] = [];
  private readonly waiting = new WaitingRequests();
  private readonly open: OpenRequests;
  private readonly lost = new FewEachTurn("a request whose replica died", LOST_AT_ONCE_MAX);
  /** The next request is sent in a later turn. */
  private isResting = false;
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(route: ApiRoute, deps: ApiPoolDeps) {
    this.route = route;
    this.deps = deps;
    this.open = new OpenRequests(route, this.tally, deps);
    this.update(route);
  }

  /** Applies a new route: connects to new replicas, and retires those that are gone. */
  update(route: ApiRoute): void {
    this.route = route;
    this.open.route = route;
    const wanted = new Map(route.replicas.map((replica) => [replica.worker_id, replica]));
    const kept = this.clients.filter((client) => wanted.has(client.route.worker_id));
    for (const client of this.clients) if (!kept.includes(client)) client.retire();
    for (const client of kept) client.parallel = route.parallel;
    const known = new Set(kept.map((client) => client.route.worker_id));
    const added = route.replicas.filter((replica) => !known.has(replica.worker_id));
    this.clients = [...kept, ...added.map((replica) => this.newClient(replica))];
    if (this.clients.length > 0) this.awake();
    this.dispatch();
  }

  retire(): void {
    for (const client of this.clients) client.retire();
    this.clients = [];
    const error = apiDeleted(this.route);
    for (const prediction of [...this.waiting.list(), ...this.open.takeAsleep()])
      this.open.settle(prediction, () => prediction.fail(error));
  }

  /** Queues a request, or refuses it if too many are already under way. */
  submit(prediction: PredictionRequest): void {
    const refusal = this.refusal();
    if (refusal !== undefined) {
      this.tally.rejected(refusal.code);
      return prediction.fail(refusal);
    }
    this.deps.onDeadline();
    if (this.clients.length === 0 && this.route.can_sleep) {
      if (this.open.asleepCount === 0) this.deps.wake(this.route.name);
      return this.open.addAsleep(prediction);
    }
    this.open.add(prediction);
    this.waiting.push(prediction);
    this.dispatch();
  }

  /** The client has left. */
  abandon(prediction: PredictionRequest): void {
    this.open.abandon(prediction);
  }

  /** Fails requests past their deadline. Returns false if no request is left. */
  expire(nowMs: number): boolean {
    return this.open.expire(nowMs);
  }

  /** Requests that wait or run here. */
  get underWay(): number {
    return this.open.count;
  }

  /** How many of these no replica has yet. */
  get waitingCount(): number {
    return this.waiting.size + this.open.asleepCount;
  }

  /** The error for any request now, whatever its body is; undefined if requests are accepted. */
  refusal(): ServiceError | undefined {
    const { capacity, status } = this.route;
    if (this.underWay >= capacity) return queueFull(this.route, this.underWay);
    return this.clients.length > 0 || status !== "error" ? undefined : noReplicaStarts(this.route);
  }

  private awake(): void {
    for (const prediction of this.open.awake()) this.waiting.push(prediction);
  }

  private dispatch(): void {
    if (this.isResting) return;
    while (!this.waiting.isEmpty) {
      const client = this.choose();
      if (client === undefined) return;
      if (this.route.wants.length > 0 && META_SLICES.isOver) return this.dispatchInTurn();
      const nowMs = performance.now();
      const next = this.waiting.take(nowMs + client.predictMs)!;
      next.replica = client;
      next.sentMs = nowMs;
      this.tally.began(nowMs - next.startedMs);
      client.send(next, this.route);
    }
  }

  private choose(): ReplicaClient | undefined {
    let best: ReplicaClient | undefined;
    for (const client of this.clients) {
      if (client.freeSlots <= 0) continue;
      if (client.isFast) return client;
      if (best === undefined || client.load < best.load) best = client;
    }
    return best;
  }

  private newClient(replica: ReplicaRoute): ReplicaClient {
    const { route, open } = this;
    return new ReplicaClient(replica, route.parallel, {
      onConnected: () => this.dispatch(),
      onResult: (prediction, head, body) => {
        open.settle(prediction, () => prediction.succeed(head, body));
        if (head !== undefined) this.tally.predicted(head);
        this.ended(prediction);
      },
      onStream: (prediction, head, onTaken) => {
        if (prediction.isAnswered) return;
        this.tally.predicted(head);
        prediction.beginStream(head, onTaken);
        // Nobody reads it: the request is a copy, or the response cannot be sent.
        if (prediction.stream === undefined) return this.abandon(prediction);
        open.stream(prediction);
        this.dispatch();
      },
      onStreamEnd: (prediction) => {
        open.settle(prediction, () => prediction.endStream());
        this.ended(prediction);
      },
      onFault: (prediction, fault) => {
        open.settle(prediction, () => this.answerFault(prediction, fault));
        this.ended(prediction);
      },
      onUnreadable: (prediction, why) => {
        const error = new ServiceError("prediction_failed", `the replica's response cannot be read: ${why}`);
        open.settle(prediction, () => prediction.fail(error));
        this.ended(prediction);
      },
      onBusy: (prediction) => {
        if (prediction.isAnswered) return this.ended(prediction);
        this.waiting.putBack([prediction]);
        this.dispatchLater();
      },
      onLost: (begun, notBegun) => {
        const error = workerDied(route);
        for (const prediction of begun) {
          open.forget(prediction);
          this.lost.add(() => open.settle(prediction, () => prediction.fail(error)));
        }
        for (const prediction of notBegun) if (prediction.isAnswered) open.forget(prediction);
        this.waiting.putBack(notBegun);
        this.dispatch();
      },
      onBroken: (why) => {
        this.deps.broken(replica, why);
        this.deps.replace(replica);
      },
    });
  }

  /** The replica is done with the request. */
  private ended(prediction: PredictionRequest): void {
    this.open.forget(prediction);
    this.dispatch();
  }

  private answerFault(prediction: PredictionRequest, fault: WorkerFault): void {
    if (fault.status_code === undefined || prediction.stream !== undefined)
      prediction.fail(faultToError(fault, this.route.name, this.route.expose_errors));
    else prediction.answer(fault.status_code, Buffer.from(JSON.stringify({ detail: fault.detail })));
  }

  private dispatchInTurn(): void {
    this.isResting = true;
    contain(`requests of API ${this.route.name}`, async () => {
      await META_SLICES.rest();
      this.isResting = false;
      this.dispatch();
    });
  }

  private dispatchLater(): void {
    const retry = () => {
      this.retryTimer = undefined;
      this.dispatch();
    };
    const unit = `requests of API ${this.route.name}`;
    this.retryTimer ??= setTimeout(() => contain(unit, retry), RETRY_MS);
  }
}
