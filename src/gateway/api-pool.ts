/**
 * The requests of one real-time API: a bounded queue in front of its replicas, with deadlines. While predictions are
 * fast one replica is filled before the next, because spreading costs several times the CPU; else the least loaded.
 */
import { ServiceError } from "../contracts/errors.ts";
import type { ApiRoute, ReplicaRoute } from "../contracts/routes.ts";
import type { WorkerFault } from "../protocol/messages.ts";
import { faultToError, type Prediction } from "./prediction.ts";
import { ReplicaClient } from "./replica-client.ts";

const RETRY_AFTER_S = 1;
/** Arrivals keep their order in here; the front is compacted once this many have gone. */
const COMPACT_AFTER = 1024;

export interface ApiPoolDeps {
  /** A request ran past its time at this replica: it is to be killed. */
  kill: (replica: ReplicaRoute) => void;
}

export class ApiPool {
  route: ApiRoute;
  private readonly deps: ApiPoolDeps;
  private clients: ReplicaClient[] = [];
  private waiting: Prediction[] = [];
  private waitingHead = 0;
  /** All requests in the order of their deadlines; answered ones are dropped when they come to the front. */
  private byDeadline: Prediction[] = [];
  private byDeadlineHead = 0;
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
    const known = new Set(kept.map((client) => client.route.worker_id));
    const added = route.replicas.filter((replica) => !known.has(replica.worker_id));
    this.clients = [...kept, ...added.map((replica) => this.newClient(replica))];
    this.dispatch();
  }

  retire(): void {
    for (const client of this.clients) client.retire();
    this.clients = [];
    for (const prediction of this.waiting.slice(this.waitingHead)) {
      this.settle(prediction, () =>
        prediction.fail(new ServiceError("api_not_found", `${this.route.name} was deleted`)),
      );
    }
  }

  /** Queues a request, or refuses it when too many are under way already. */
  submit(prediction: Prediction): void {
    if (this.pending >= this.route.capacity) {
      const message = `${this.pending} requests of ${this.route.name} are under way, the limit is ${this.route.capacity}; try again later, or raise autoscaling.min_replicas`;
      prediction.fail(new ServiceError("queue_full", message, { retryAfterS: RETRY_AFTER_S }));
      return;
    }
    if (this.clients.length === 0 && this.route.status === "error") {
      prediction.fail(
        new ServiceError(
          "api_not_ready",
          `${this.route.name} has no replica that could start; \`quern logs ${this.route.name}\` tells why`,
          { retryAfterS: RETRY_AFTER_S },
        ),
      );
      return;
    }
    this.pending++;
    this.byDeadline.push(prediction);
    this.waiting.push(prediction);
    this.dispatch();
  }

  /** The client has left. */
  abandon(prediction: Prediction): void {
    if (prediction.isAnswered) return;
    this.settle(prediction, () => prediction.abandon());
    for (const client of this.clients) client.abandon(prediction);
  }

  /** Answers what is past its deadline with 504; a replica that is at work on it is killed. */
  expire(nowMs: number): void {
    while (this.byDeadlineHead < this.byDeadline.length) {
      const prediction = this.byDeadline[this.byDeadlineHead]!;
      // What its client abandoned may still hold a replica: it is watched to its deadline.
      if (!prediction.isAnswered || prediction.isAbandoned) {
        if (prediction.deadlineMs > nowMs) break;
        this.expireOne(prediction);
      }
      this.byDeadlineHead++;
    }
    if (this.byDeadlineHead > COMPACT_AFTER) {
      this.byDeadline = this.byDeadline.slice(this.byDeadlineHead);
      this.byDeadlineHead = 0;
    }
  }

  get underWay(): number {
    return this.pending;
  }

  private expireOne(prediction: Prediction): void {
    const client = this.clients.find((candidate) => candidate.has(prediction));
    const where = client === undefined ? "while it was waiting for a replica" : "in predict()";
    const message = `the prediction was not done within predictor.timeout (${this.route.timeout_ms} ms), which ran out ${where}`;
    this.settle(prediction, () => prediction.fail(new ServiceError("prediction_timeout", message)));
    if (client === undefined) return;
    client.abandon(prediction);
    this.deps.kill(client.route);
  }

  private dispatch(): void {
    while (this.waitingHead < this.waiting.length) {
      const prediction = this.waiting[this.waitingHead]!;
      if (!prediction.isAnswered) {
        const client = this.choose();
        if (client === undefined) return;
        client.send(prediction);
      }
      this.waitingHead++;
    }
    this.waiting.length = 0;
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
    answer();
    this.pending--;
  }

  private putBack(predictions: Prediction[]): void {
    this.waiting = [...predictions, ...this.waiting.slice(this.waitingHead)];
    this.waitingHead = 0;
  }

  private newClient(replica: ReplicaRoute): ReplicaClient {
    const name = this.route.name;
    return new ReplicaClient(replica, {
      onConnected: () => this.dispatch(),
      onResult: (_, prediction, result) => {
        this.settle(prediction, () => prediction.succeed(result));
        this.dispatch();
      },
      onFault: (_, prediction, fault) => {
        this.settle(prediction, () => this.answerFault(prediction, fault));
        this.dispatch();
      },
      onBusy: (_, prediction) => {
        if (prediction.isAnswered) return this.dispatch();
        this.putBack([prediction]);
        this.dispatchLater();
      },
      onLost: (_, begun, notBegun) => {
        const error = new ServiceError(
          "worker_died",
          `the worker died while it was at work on the request; \`quern logs ${name}\` has what it said last`,
        );
        for (const prediction of begun) this.settle(prediction, () => prediction.fail(error));
        this.putBack(notBegun);
        this.dispatch();
      },
    });
  }

  private answerFault(prediction: Prediction, fault: WorkerFault): void {
    if (fault.status_code === undefined)
      prediction.fail(faultToError(fault, this.route.name, this.route.expose_errors));
    else prediction.answer(fault.status_code, Buffer.from(JSON.stringify({ detail: fault.detail })));
  }

  private dispatchLater(): void {
    this.retryTimer ??= setTimeout(() => {
      this.retryTimer = undefined;
      this.dispatch();
    }, 60);
  }
}
