/** The requests that one replica has, by the ids that they have on its connection. */
import { ProtocolError } from "../../protocol/frame-rules.ts";
import { MESSAGE } from "../../protocol/messages.ts";
import type { WorkerConnection } from "../../protocol/worker-connection.ts";
import type { PredictionRequest } from "../answers/prediction-request.ts";

export class SentRequests {
  /** Sent and not answered; streams are here only until they begin. */
  private readonly outstanding = new Map<number, PredictionRequest>();
  private readonly streams = new Map<number, PredictionRequest>();
  private nextId = 1;

  get count(): number {
    return this.outstanding.size + this.streams.size;
  }

  /** Without the streams that have begun. */
  get outstandingCount(): number {
    return this.outstanding.size;
  }

  /** Returns the id of the request. */
  add(prediction: PredictionRequest): number {
    const id = this.nextId;
    this.nextId = id === 0xffff_ffff ? 1 : id + 1;
    this.outstanding.set(id, prediction);
    prediction.sentId = id;
    return id;
  }

  /** Undefined if the replica does not have it. Thousands of clients may leave at once, so nothing is searched. */
  idOf(prediction: PredictionRequest): number | undefined {
    const { sentId } = prediction;
    const known = this.outstanding.get(sentId) ?? this.streams.get(sentId);
    return known === prediction ? sentId : undefined;
  }

  /** The request whose stream has begun. */
  streamOf(id: number): PredictionRequest | undefined {
    return this.streams.get(id);
  }

  /** Whether the replica may begin a long body: the result of a request, or a piece of a stream that has credit. */
  expects(type: number, id: number): boolean {
    if (type !== MESSAGE.CHUNK) return this.outstanding.has(id);
    const streaming = this.streams.get(id);
    return streaming !== undefined && streaming.stream?.isPastCredit !== true;
  }

  /**
   * The request to which the replica replies; undefined if nobody waits for it. After STREAM it stays, after any other
   * reply it is forgotten. Throws if the reply is out of order.
   */
  replied(type: number, id: number): PredictionRequest | undefined {
    const waiting = this.outstanding.get(id);
    const prediction = waiting ?? this.streams.get(id);
    if (prediction === undefined) return undefined;
    checkOrder(type, waiting === undefined, prediction);
    this.outstanding.delete(id);
    if (type === MESSAGE.STREAM) this.streams.set(id, prediction);
    else this.streams.delete(id);
    return prediction;
  }

  /**
   * Forgets all requests of a lost connection: those that may have started, and those that certainly did not.
   * `begunUpTo` is the highest id that may have started.
   */
  lose(
    begunUpTo: number,
    connection: WorkerConnection | undefined,
  ): { begun: PredictionRequest[]; notBegun: PredictionRequest[] } {
    const begun = [...this.streams.values()];
    const notBegun: PredictionRequest[] = [];
    for (const [id, prediction] of this.outstanding) {
      // Ids start in any order, because a long body arrives later than a short one. So all up to the highest may have
      // started, except those whose body the worker cannot have in full.
      const mayHaveBegun = id <= begunUpTo && connection?.isSending(id) !== true;
      (mayHaveBegun ? begun : notBegun).push(prediction);
    }
    this.outstanding.clear();
    this.streams.clear();
    return { begun, notBegun };
  }
}

/**
 * Throws if a reply is out of order: it would not end the request, and the client would wait forever. A stream that has
 * begun gets BUSY only if nobody waits for it, because a client that waits has its first pieces.
 */
function checkOrder(type: number, isStream: boolean, { isAnswered }: PredictionRequest): void {
  const isWrong = isStream
    ? type === MESSAGE.RESULT || type === MESSAGE.STREAM || (type === MESSAGE.BUSY && !isAnswered)
    : type === MESSAGE.END;
  if (!isWrong) return;
  const when = isStream ? "inside of a stream" : "without a stream before it";
  throw new ProtocolError(`a message of type ${type} came ${when}`);
}
