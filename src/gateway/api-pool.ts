/**
 * The requests of one real-time API: a bounded queue in front of its replicas, with deadlines. While predictions are
 * fast one replica is filled before the next, because spreading costs several times the CPU; else the least loaded.
 */
import { contain } from "../base/boundary.ts";
import { asServiceError, revoked, ServiceError } from "../contracts/errors.ts";
import { CANCEL_GRACE_MS, STREAM_LOOK_MS, WAKE_UP_MS } from "../contracts/limits.ts";
import type { ApiRoute, ReplicaRoute } from "../contracts/routes.ts";
import type { WorkerFault } from "../protocol/messages.ts";
import { Deadlines } from "./deadlines.ts";
import { faultToError, type Prediction } from "./prediction.ts";
import { ReplicaClient } from "./replica-client.ts";
import { RequestTally } from "./tally.ts";

const RETRY_AFTER_S = 1;
/** A replica that was busy is asked again. */
const RETRY_MS = 60;
/** The front of the queue is let go of when so many have gone, and half of it. */
const COMPACT_AFTER = 1024;

export interface ApiPoolDeps {
  /** A request ran past its time at this replica, and nothing but its death ends it. */
  kill: (replica: ReplicaRoute) => void;
  /** The same where others run beside it: it is to finish those first. */
  replace: (replica: ReplicaRoute) => void;
  /** A request came while there was no replica at all: one is to be started. */
  wake: (api: string) => void;
  /** A replica broke the protocol of workers. */
  broken: (replica: ReplicaRoute, why: string) => void;
  /** A request has a deadline from now on. */
  onDeadline: () => void;
}

export class ApiPool {
  route: ApiRoute;
  readonly tally = new RequestTally();
  private readonly deps: ApiPoolDeps;
  private clients: ReplicaClient[] = [];
  private waiting: Prediction[] = [];
  private waitingHead = 0;
  private readonly deadlines = new Deadlines();
  /** Came while there was no replica: their time begins when there is one. */
  private readonly asleep = new Deadlines();
  private readonly streaming = new Set<Prediction>();
  /** When their keys were looked at last (performance.now()). */
  private keysLookedMs = 0;
  private pending = 0;
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(route: ApiRoute, deps: ApiPoolDeps) {
    this.route = route;
    this.deps = deps;
    this.update(route);
  }

  /** Takes over a new route: connects to new replicas, lets go of those that are gone. */
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

  /** Queues a request, or refuses it when too many are under way already. */
  submit(prediction: Prediction): void {
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
  abandon(prediction: Prediction): void {
    if (prediction.isAnswered) return;
    this.settle(prediction, () => prediction.abandon());
    this.leave(prediction);
  }

  /**
   * Answers what is past its deadline; a replica that is at work on it is told, and replaced where that does not help.
   * False when no request is left to look at.
   */
  expire(nowMs: number): boolean {
    this.deadlines.expire(nowMs, (prediction) => this.expireOne(prediction));
    this.asleep.expire(nowMs, (prediction) => this.expireOne(prediction));
    for (const prediction of this.streaming) {
      if (prediction.stream!.lastTakenMs + this.route.timeout_ms < nowMs) this.expireStream(prediction);
    }
    if (nowMs - this.keysLookedMs >= STREAM_LOOK_MS) this.endRevoked(nowMs);
    return this.pending > 0 || this.deadlines.size > 0 || this.asleep.size > 0;
  }

  /** Requests that wait or run here. */
  get underWay(): number {
    return this.pending;
  }

  /** Of those, the ones that no replica has been given. */
  get waitingCount(): number {
    return this.waiting.length - this.waitingHead + this.asleep.size;
  }

  /** What a request is refused with now, whatever its body is. */
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

  private expireOne(prediction: Prediction): void {
    const holder = prediction.holder?.has(prediction) ? prediction.holder : undefined;
    const error = holder === undefined ? this.neverStarted() : this.tooLong("in predict()");
    this.settle(prediction, () => {
      this.tally.rejected(error.code);
      prediction.fail(error);
    });
    if (holder === undefined) return;
    holder.abandon(prediction);
    if (this.route.is_blocking) return this.deps.kill(holder.route);
    this.replaceUnlessEnded(prediction);
  }

  /** A client that does not read is left; a producer that stands still is told to end. */
  private expireStream(prediction: Prediction): void {
    const stream = prediction.stream!;
    const isReaderSlow = stream.isFull;
    this.settle(prediction, () =>
      isReaderSlow ? prediction.abandon() : prediction.fail(this.tooLong("between two pieces of the answer")),
    );
    if (isReaderSlow) stream.cut();
    prediction.holder?.abandon(prediction);
    this.replaceUnlessEnded(prediction);
  }

  /** A stream ends with the key that opened it; one that needed none, with the first key. */
  private endRevoked(nowMs: number): void {
    this.keysLookedMs = nowMs;
    for (const prediction of this.streaming) {
      const stream = prediction.stream!;
      if (prediction.isStillOpen) continue;
      this.settle(prediction, () => prediction.fail(revoked()));
      if (stream.isFull) stream.cut();
      // The predictor has done nothing wrong, and may need its time for a piece.
      this.leave(prediction);
    }
  }

  /** It may go on at its replica, which is told that nobody waits, and is well: it is watched to its time. */
  private leave(prediction: Prediction): void {
    const { holder } = prediction;
    if (holder?.has(prediction) !== true) return;
    holder.abandon(prediction);
    // A stream has the time of one more piece to end.
    const isStream = prediction.stream !== undefined;
    const atMs = isStream ? performance.now() + this.route.timeout_ms : prediction.deadlineMs;
    this.deadlines.add(prediction, atMs);
  }

  private replaceUnlessEnded(prediction: Prediction): void {
    const replace = () => {
      const { holder } = prediction;
      if (holder?.has(prediction)) this.deps.replace(holder.route);
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
        prediction.holder = client;
        this.tally.began(performance.now() - prediction.startedMs);
        client.send(prediction);
      }
      this.waitingHead++;
    }
    this.waiting.length = 0;
    this.waitingHead = 0;
  }

  /** Lets go of those at the front of the queue that replicas have been given. */
  private compact(): void {
    if (this.waitingHead < COMPACT_AFTER || this.waitingHead * 2 < this.waiting.length) return;
    this.waiting = this.waiting.slice(this.waitingHead);
    this.waitingHead = 0;
  }

  private choose(): ReplicaClient | undefined {
    let best: ReplicaClient | undefined;
    for (const client of this.clients) {
      if (client.room <= 0) continue;
      if (client.isFast) return client;
      if (best === undefined || client.load < best.load) best = client;
    }
    return best;
  }

  private settle(prediction: Prediction, answer: () => void): void {
    if (prediction.isAnswered) return;
    try {
      answer();
    } catch (error) {
      // Its own only: whoever brought the answer has others on the same connection.
      prediction.fail(asServiceError(error));
    }
    this.forget(prediction);
    this.streaming.delete(prediction);
    this.pending--;
  }

  /** Its time is of no concern any more. */
  private forget(prediction: Prediction): void {
    this.deadlines.delete(prediction);
    this.asleep.delete(prediction);
  }

  private putBack(predictions: Prediction[]): void {
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
      onStream: (prediction, head, onRoom) => {
        if (prediction.isAnswered) return;
        this.tally.predicted(head);
        prediction.beginStream(head, onRoom);
        // Nobody reads it: the request is a copy, or the answer cannot be sent.
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

  /** A replica is done with it. */
  private ended(prediction: Prediction): void {
    this.forget(prediction);
    this.dispatch();
  }

  private answerFault(prediction: Prediction, fault: WorkerFault): void {
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
