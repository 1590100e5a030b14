/**
 * The requests of one real-time API that have no complete response yet. Each is settled once: answered, failed, or left
 * by its client. Those past their deadline are failed here, and so are streams whose key was revoked.
 */
import { contain } from "../../base/boundary.ts";
import { asServiceError, revoked } from "../../contracts/errors.ts";
import { CANCEL_GRACE_MS, WAKE_UP_MS } from "../../contracts/limits/predictions.ts";
import { STREAM_POLL_MS } from "../../contracts/limits/responses.ts";
import type { ApiRoute, ReplicaRoute } from "../../contracts/routes.ts";
import type { PredictionRequest, ServingReplica } from "../answers/prediction-request.ts";
import { Deadlines } from "./deadlines.ts";
import { neverStarted, tooLong } from "./pool-errors.ts";
import type { RequestTally } from "./tally.ts";

/** What is done with a replica that goes on with a request which has ended. */
export interface ReplicaEnds {
  /** Kills a replica: a call there has run too long, and nothing else ends it. */
  kill: (replica: ReplicaRoute) => void;
  /** Replaces a replica, which finishes its other requests first. */
  replace: (replica: ReplicaRoute) => void;
}

export class OpenRequests {
  /** The newest route: its timeout is that of later requests, its name that of all errors. */
  route: ApiRoute;
  private readonly tally: RequestTally;
  private readonly ends: ReplicaEnds;
  private readonly deadlines = new Deadlines();
  /** Requests that came while there was no replica: their timeout starts when there is one. */
  private readonly asleep = new Deadlines();
  /** Requests past their deadline that a replica still has which runs one call at a time: when to look at it again. */
  private readonly overdue = new Deadlines();
  private readonly streaming = new Set<PredictionRequest>();
  /** When the keys of streams were last checked (performance.now()). */
  private keysLookedMs = 0;
  private pending = 0;

  constructor(route: ApiRoute, tally: RequestTally, ends: ReplicaEnds) {
    this.route = route;
    this.tally = tally;
    this.ends = ends;
  }

  get count(): number {
    return this.pending;
  }

  get asleepCount(): number {
    return this.asleep.size;
  }

  /** A request whose timeout began when it arrived. */
  add(prediction: PredictionRequest): void {
    this.pending++;
    this.deadlines.add(prediction, prediction.startedMs + this.route.timeout_ms);
  }

  /** A request that waits for a first replica. */
  addAsleep(prediction: PredictionRequest): void {
    this.pending++;
    this.asleep.add(prediction, performance.now() + WAKE_UP_MS);
  }

  /** There is a replica: the timeout of those that waited for it starts. Returns them in the order of their arrival. */
  awake(): PredictionRequest[] {
    const awoken = this.asleep.take();
    for (const prediction of awoken)
      this.deadlines.add(prediction, performance.now() + this.route.timeout_ms);
    return awoken;
  }

  takeAsleep(): PredictionRequest[] {
    return this.asleep.take();
  }

  /** The response has begun: from now on its pieces are timed, not the whole. */
  stream(prediction: PredictionRequest): void {
    this.deadlines.delete(prediction);
    this.streaming.add(prediction);
  }

  /** Ends a request that is not answered yet by `answer`. */
  settle(prediction: PredictionRequest, answer: () => void): void {
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

  /** Drops the request's deadline, if it still has one. On the hot path. */
  forget(prediction: PredictionRequest): void {
    prediction.deadlines?.delete(prediction);
  }

  /** The client has left. */
  abandon(prediction: PredictionRequest): void {
    if (prediction.isAnswered) return;
    this.settle(prediction, () => prediction.abandon());
    this.leave(prediction);
  }

  /**
   * Fails requests past their deadline. If a replica works on one, it gets CANCEL, and is replaced if it goes on. A
   * replica whose `predict` blocks is killed once the call that runs there has run for the whole timeout: the request's
   * own time may have passed in the queue, or while its body came. Returns false if no request is left.
   */
  expire(nowMs: number): boolean {
    this.deadlines.expire(nowMs, (prediction) => this.expireOne(prediction, nowMs));
    this.asleep.expire(nowMs, (prediction) => this.expireOne(prediction, nowMs));
    this.overdue.expire(nowMs, (prediction) => this.endOverdue(prediction, nowMs));
    for (const prediction of this.streaming) {
      const stream = prediction.stream!;
      // One whose turn has not come depends on the response before it, which has a deadline of its own.
      if (!stream.waitsForTurn && stream.lastTakenMs + this.route.timeout_ms < nowMs)
        this.expireStream(prediction);
    }
    if (nowMs - this.keysLookedMs >= STREAM_POLL_MS) this.endRevoked(nowMs);
    return [this.deadlines, this.asleep, this.overdue].some(({ size }) => size > 0) || this.pending > 0;
  }

  private expireOne(prediction: PredictionRequest, nowMs: number): void {
    const replica = prediction.replica?.has(prediction) ? prediction.replica : undefined;
    const error =
      replica === undefined ? neverStarted(this.route) : tooLong(this.route, whereOf(prediction, replica));
    this.settle(prediction, () => {
      this.tally.rejected(error.code);
      prediction.fail(error);
    });
    if (replica === undefined) return;
    replica.abandon(prediction);
    if (this.route.is_blocking) return this.killOrWait(prediction, replica, nowMs);
    const leftMs = prediction.sentMs + this.route.timeout_ms - nowMs;
    this.replaceUnlessEnded(prediction, CANCEL_GRACE_MS + Math.max(leftMs, 0));
  }

  /** Whichever request it is that runs too long: it holds up all others. */
  private killOrWait(prediction: PredictionRequest, replica: ServingReplica, nowMs: number): void {
    const leftMs = this.route.timeout_ms - replica.runsForMs;
    if (leftMs <= 0) return this.ends.kill(replica.route);
    this.overdue.add(prediction, nowMs + leftMs);
  }

  /** A replica that runs no call has read the CANCEL long ago; if it has not replied, it hangs outside of user code. */
  private endOverdue(prediction: PredictionRequest, nowMs: number): void {
    const { replica } = prediction;
    if (!replica?.has(prediction)) return;
    if (replica.runsForMs === 0) return this.ends.replace(replica.route);
    this.killOrWait(prediction, replica, nowMs);
  }

  /** Cuts off a client that does not read, or ends a producer that stands still. */
  private expireStream(prediction: PredictionRequest): void {
    const stream = prediction.stream!;
    const isReaderSlow = stream.isFull;
    this.settle(prediction, () =>
      isReaderSlow
        ? prediction.abandon()
        : prediction.fail(tooLong(this.route, "between two pieces of the response")),
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

  private replaceUnlessEnded(prediction: PredictionRequest, graceMs = CANCEL_GRACE_MS): void {
    const replace = () => {
      const { replica } = prediction;
      if (replica?.has(prediction)) this.ends.replace(replica.route);
    };
    const unit = `requests of API ${this.route.name}`;
    setTimeout(() => contain(unit, replace), graceMs).unref();
  }
}

/** Where the time of a request ran out that a replica has. */
function whereOf(prediction: PredictionRequest, replica: ServingReplica): string {
  if (!replica.mayHaveBegun(prediction))
    return "while it waited for the predictions before it at its replica";
  const waitedMs = Math.round(prediction.sentMs - prediction.startedMs);
  return `in predict(); it had come to a replica after ${waitedMs} ms`;
}
