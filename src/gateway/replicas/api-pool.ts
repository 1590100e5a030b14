/**
 * The requests of one real-time API: a bounded queue with deadlines, in front of its replicas. While predictions are
 * fast, one replica is filled before the next, because spreading costs several times the CPU. Otherwise the least
 * loaded replica is chosen.
 */
import { contain } from "../../base/boundary.ts";
import { asServiceError, revoked, ServiceError } from "../../contracts/errors.ts";
import { CANCEL_GRACE_MS, STREAM_POLL_MS, WAKE_UP_MS } from "../../contracts/limits.ts";
import type { ApiRoute, ReplicaRoute } from "../../contracts/routes.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { faultToError } from "../answers/fault-to-error.ts";
import type { PredictionRequest } from "../answers/prediction-request.ts";
import { Deadlines } from "./deadlines.ts";
import { ReplicaClient } from "./replica-client.ts";
import { RequestTally } from "./tally.ts";

const RETRY_AFTER_S = 1;
/** How long to wait before a busy replica is tried again. */
const RETRY_MS = 60;
/** The front of the queue is cut off when at least this many requests, and half of all, have left it. */
const COMPACT_AFTER = 1024;

export interface ApiPoolDeps {
  /** Kills a replica: a request there is past its deadline, and nothing else ends it. */
  kill: (replica: ReplicaRoute) => void;
  /** Replaces a replica, which finishes its other requests first. */
  replace: (replica: ReplicaRoute) => void;
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
  private waiting: PredictionRequest[] = [];
  private waitingHead = 0;
  private readonly deadlines = new Deadlines();
  /** Requests that came while there was no replica: their timeout starts when there is one. */
  private readonly asleep = new Deadlines();
  private readonly streaming = new Set<PredictionRequest>();
  /** When the keys of streams were last checked (performance.now()). */
  private keysLookedMs = 0;
  private pending = 0;
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(route: ApiRoute, deps: ApiPoolDeps) {
    this.route = route;
    this.deps = deps;
    this.update(route);
  }

  /** Applies a new route: connects to new replicas, and retires those that are gone. */
  update(route: ApiRoute): void {
    this.route = route;
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
    const deleted = new ServiceError("api_not_found", `${this.route.name} was deleted`);
    for (const prediction of [...this.waiting.slice(this.waitingHead), ...this.asleep.take()])
      this.settle(prediction, () => prediction.fail(deleted));
  }

  /** Queues a request, or refuses it if too many are already under way. */
  submit(prediction: PredictionRequest): void {
    const refusal = this.refusal();
    if (refusal !== undefined) {
      this.tally.rejected(refusal.code);
      return prediction.fail(refusal);
    }
    this.pending++;
    this.deps.onDeadline();
    if (this.clients.length === 0 && this.route.can_sleep) {
      if (this.asleep.size === 0) this.deps.wake(this.route.name);
      this.asleep.add(prediction, performance.now() + WAKE_UP_MS);
      return;
    }
    this.deadlines.add(prediction, prediction.startedMs + this.route.timeout_ms);
    this.waiting.push(prediction);
    this.dispatch();
  }

  /** The client has left. */
  abandon(prediction: PredictionRequest): void {
    if (prediction.isAnswered) return;
    this.settle(prediction, () => prediction.abandon());
    this.leave(prediction);
  }

  /**
   * Fails requests past their deadline. If a replica works on one, it gets CANCEL, and is replaced if it goes on. A
   * replica whose `predict` blocks is killed. Returns false if no request is left.
   */
  expire(nowMs: number): boolean {
    this.deadlines.expire(nowMs, (prediction) => this.expireOne(prediction));
    this.asleep.expire(nowMs, (prediction) => this.expireOne(prediction));
    for (const prediction of this.streaming) {
      if (prediction.stream!.lastTakenMs + this.route.timeout_ms < nowMs) this.expireStream(prediction);
    }
    if (nowMs - this.keysLookedMs >= STREAM_POLL_MS) this.endRevoked(nowMs);
    return this.pending > 0 || this.deadlines.size > 0 || this.asleep.size > 0;
  }

  /** Requests that wait or run here. */
  get underWay(): number {
    return this.pending;
  }

  /** How many of these no replica has yet. */
  get waitingCount(): number {
    return this.waiting.length - this.waitingHead + this.asleep.size;
  }

  /** The error for any request now, whatever its body is; undefined if requests are accepted. */
  refusal(): ServiceError | undefined {
    const { name, capacity, status } = this.route;
    if (this.pending >= capacity) {
      const message = `${this.pending} requests of ${name} are under way, the limit is ${capacity}; try again later, or raise autoscaling.max_replica_concurrency or the number of replicas`;
      return new ServiceError("queue_full", message, { retryAfterS: RETRY_AFTER_S });
    }
    if (this.clients.length > 0 || status !== "error") return undefined;
    const message = `${name} has no replica that could start; \`quern logs ${name}\` tells why`;
    return new ServiceError("api_not_ready", message, { retryAfterS: RETRY_AFTER_S });
  }

  private awake(): void {
    for (const prediction of this.asleep.take()) {
      this.deadlines.add(prediction, performance.now() + this.route.timeout_ms);
      this.waiting.push(prediction);
    }
  }

  private expireOne(prediction: PredictionRequest): void {
    const replica = prediction.replica?.has(prediction) ? prediction.replica : undefined;
    const error = replica === undefined ? this.neverStarted() : this.tooLong("in predict()");
    this.settle(prediction, () => {
      this.tally.rejected(error.code);
      prediction.fail(error);
    });
    if (replica === undefined) return;
    replica.abandon(prediction);
    if (this.route.is_blocking) return this.deps.kill(replica.route);
    this.replaceUnlessEnded(prediction);
  }

  /** Cuts off a client that does not read, or ends a producer that stands still. */
  private expireStream(prediction: PredictionRequest): void {
    const stream = prediction.stream!;
    const isReaderSlow = stream.isFull;
    this.settle(prediction, () =>
      isReaderSlow ? prediction.abandon() : prediction.fail(this.tooLong("between two pieces of the answer")),
    );
    if (isReaderSlow) stream.cut();
    prediction.replica?.abandon(prediction);
    this.replaceUnlessEnded(prediction);
  }

  /** A stream ends with the key that opened it. If it needed no key, it ends when the first key is created. */
  private endRevoked(nowMs: number): void {
    this.keysLookedMs = nowMs;
    for (const prediction of this.streaming) {
      const stream = prediction.stream!;
      if (prediction.isStillOpen) continue;
      this.settle(prediction, () => prediction.fail(revoked()));
      if (stream.isFull) stream.cut();
      // The predictor did nothing wrong, and may need its time for a piece.
      this.leave(prediction);
    }
  }

  /** Cancels a request at its replica. The replica is healthy, so the request may run until its deadline. */
  private leave(prediction: PredictionRequest): void {
    const { replica } = prediction;
    if (replica?.has(prediction) !== true) return;
    replica.abandon(prediction);
    // A stream gets the time of one more piece to end.
    const isStream = prediction.stream !== undefined;
    const atMs = isStream ? performance.now() + this.route.timeout_ms : prediction.deadlineMs;
    this.deadlines.add(prediction, atMs);
  }

  private replaceUnlessEnded(prediction: PredictionRequest): void {
    const replace = () => {
      const { replica } = prediction;
      if (replica?.has(prediction)) this.deps.replace(replica.route);
    };
    setTimeout(() => this.inside(replace), CANCEL_GRACE_MS).unref();
  }

  private tooLong(where: string): ServiceError {
    const message = `the prediction was not done within predictor.timeout (${this.route.timeout_ms} ms), which ran out ${where}`;
    return new ServiceError("prediction_timeout", message);
  }

  private neverStarted(): ServiceError {
    const { name, timeout_ms } = this.route;
    const message = `no replica of ${name} was free for the request within predictor.timeout (${timeout_ms} ms), or none came up; try again later, or raise autoscaling.min_replicas`;
    return new ServiceError("queue_timeout", message, { retryAfterS: RETRY_AFTER_S });
  }

  private dispatch(): void {
    while (this.waitingHead < this.waiting.length) {
      const prediction = this.waiting[this.waitingHead]!;
      if (!prediction.isAnswered) {
        const client = this.choose();
        if (client === undefined) return this.compact();
        prediction.replica = client;
        this.tally.began(performance.now() - prediction.startedMs);
        client.send(prediction);
      }
      this.waitingHead++;
    }
    this.waiting.length = 0;
    this.waitingHead = 0;
  }

  /** Drops requests that replicas already have from the front of the queue. */
  private compact(): void {
    if (this.waitingHead < COMPACT_AFTER || this.waitingHead * 2 < this.waiting.length) return;
    this.waiting = this.waiting.slice(this.waitingHead);
    this.waitingHead = 0;
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

  private settle(prediction: PredictionRequest, answer: () => void): void {
    if (prediction.isAnswered) return;
    try {
      answer();
    } catch (error) {
      // Fails this request only: other requests share the connection that brought the answer.
      prediction.fail(asServiceError(error));
    }
    this.forget(prediction);
    this.streaming.delete(prediction);
    this.pending--;
  }

  /** Drops the request's deadlines. */
  private forget(prediction: PredictionRequest): void {
    this.deadlines.delete(prediction);
    this.asleep.delete(prediction);
  }

  private putBack(predictions: PredictionRequest[]): void {
    this.waiting = [...predictions, ...this.waiting.slice(this.waitingHead)];
    this.waitingHead = 0;
  }

  private newClient(replica: ReplicaRoute): ReplicaClient {
    const { name, parallel } = this.route;
    const died = `the worker died while it was at work on the request; \`quern logs ${name}\` has what it said last`;
    return new ReplicaClient(replica, parallel, {
      onConnected: () => this.dispatch(),
      onResult: (prediction, head, body) => {
        this.settle(prediction, () => prediction.succeed(head, body));
        if (head !== undefined) this.tally.predicted(head);
        this.ended(prediction);
      },
      onStream: (prediction, head, onTaken) => {
        if (prediction.isAnswered) return;
        this.tally.predicted(head);
        prediction.beginStream(head, onTaken);
        // Nobody reads it: the request is a copy, or the response cannot be sent.
        if (prediction.stream === undefined) return this.abandon(prediction);
        this.deadlines.delete(prediction);
        this.streaming.add(prediction);
        this.dispatch();
      },
      onStreamEnd: (prediction) => {
        this.settle(prediction, () => prediction.endStream());
        this.ended(prediction);
      },
      onFault: (prediction, fault) => {
        this.settle(prediction, () => this.answerFault(prediction, fault));
        this.ended(prediction);
      },
      onUnreadable: (prediction, why) => {
        const error = new ServiceError("prediction_failed", `the replica's answer cannot be read: ${why}`);
        this.settle(prediction, () => prediction.fail(error));
        this.ended(prediction);
      },
      onBusy: (prediction) => {
        if (prediction.isAnswered) return this.ended(prediction);
        this.putBack([prediction]);
        this.dispatchLater();
      },
      onLost: (begun, notBegun) => {
        const error = new ServiceError("worker_died", died);
        for (const prediction of begun) this.settle(prediction, () => prediction.fail(error));
        for (const prediction of [...begun, ...notBegun]) if (prediction.isAnswered) this.forget(prediction);
        this.putBack(notBegun);
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
    this.forget(prediction);
    this.dispatch();
  }

  private answerFault(prediction: PredictionRequest, fault: WorkerFault): void {
    if (fault.status_code === undefined || prediction.stream !== undefined)
      prediction.fail(faultToError(fault, this.route.name, this.route.expose_errors));
    else prediction.answer(fault.status_code, Buffer.from(JSON.stringify({ detail: fault.detail })));
  }

  private inside(work: () => void): void {
    contain(`requests of API ${this.route.name}`, work);
  }

  private dispatchLater(): void {
    const retry = () => {
      this.retryTimer = undefined;
      this.dispatch();
    };
    this.retryTimer ??= setTimeout(() => this.inside(retry), RETRY_MS);
  }
}
