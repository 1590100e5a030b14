/** One request for a prediction on its way through the gateway: waiting, at a replica, streaming, or answered. */
import type { ServerResponse } from "node:http";
import { ServiceError, toProblem } from "../../contracts/errors.ts";
import type { ApiRoute, ReplicaRoute } from "../../contracts/routes.ts";
import type { AnswerHead, StreamHead } from "../../protocol/messages.ts";
import { answerHeaders, WITHOUT_BODY } from "./answer-headers.ts";
import { ownFaults } from "./own-faults.ts";
import { sendError } from "./send-error.ts";
import { bodyFormat } from "./stream-format.ts";
import { StreamedAnswer } from "./streamed-answer.ts";
import { unreadAnswers } from "./unread-answers.ts";
import { sendBody, writeHead } from "./write-response.ts";

const NO_BODY: readonly Buffer[] = [];
/** The replica that has a request. */
export interface ServingReplica {
  readonly route: ReplicaRoute;
  /** How long the call of user code that runs there has run, for a replica that runs one at a time; 0 if none runs. */
  readonly runsForMs: number;
  has(prediction: PredictionRequest): boolean;
  /** Whether `predict()` may have begun with it. */
  mayHaveBegun(prediction: PredictionRequest): boolean;
  /** Nobody waits for the response any more. */
  abandon(prediction: PredictionRequest): void;
}

/** A list of requests with their deadlines. */
export interface DeadlineList {
  delete(prediction: PredictionRequest): void;
}

/** What a predictor takes beside the payload. */
export type Wishes = Pick<ApiRoute, "wants" | "pass_credentials">;

/** What META is made of, each time the request is sent: a deploy may change meanwhile what the predictor declares. */
export interface MetaSource {
  /** As JSON; undefined if the payload is enough. */
  metaFor(wishes: Wishes): string | undefined;
}

/** The request as it arrived. */
export interface ArrivedRequest {
  /** When it arrived (performance.now()). */
  readonly startedMs: number;
  readonly requestId: string;
  /** The body, in the parts that came from the client. */
  readonly parts: readonly Buffer[];
  /** The body is no longer needed. */
  bodyDone(): void;
  /** Whether the request would still be admitted; if not, its stream ends. */
  isStillOpen(): boolean;
}

export class PredictionRequest {
  /** The body of PREDICT, in the parts that came from the client. Dropped after the response. */
  body: readonly Buffer[];
  /** Dropped after the response: it has up to 32 KB. */
  head: MetaSource | undefined;
  /** When the request arrived (performance.now()). */
  readonly startedMs: number;
  readonly requestId: string;
  /** The client asked for server-sent events. */
  readonly wantsEvents: boolean;
  /** The deadline (performance.now()), set by `Deadlines`. */
  deadlineMs = Number.POSITIVE_INFINITY;
  /** The list that ends the request at its deadline. */
  deadlines: DeadlineList | undefined;
  /** When it was last sent to a replica (performance.now()). */
  sentMs = Number.NEGATIVE_INFINITY;
  /** Its id at that replica. */
  sentId = 0;
  isAnswered = false;
  /** The client left before the response. */
  isAbandoned = false;
  /** The replica to which the request was last sent. */
  replica: ServingReplica | undefined;
  /** Set when a streamed response begins. */
  stream: StreamedAnswer | undefined;
  /** The arrived request while a stream lasts: see `isStillOpen`. */
  private streamArrived: ArrivedRequest | undefined;
  /** Dropped after the response, because lists keep a prediction for longer. */
  private arrived: ArrivedRequest | undefined;
  /** Dropped after the response. A copy for a shadow has none. */
  private response: ServerResponse | undefined;

  /** `response` is undefined for the copy of a request: the copy's response is dropped. */
  constructor(
    response: ServerResponse | undefined,
    arrived: ArrivedRequest,
    head: MetaSource | undefined,
    wantsEvents: boolean,
  ) {
    this.response = response;
    this.startedMs = arrived.startedMs;
    this.requestId = arrived.requestId;
    this.head = head;
    this.body = arrived.parts;
    this.wantsEvents = wantsEvents;
    this.arrived = arrived;
  }

  /** Responds with the prediction. */
  succeed(head: AnswerHead | undefined, body: Buffer): void {
    const status = head?.status ?? 200;
    if (head?.headers === undefined) this.answer(status, body);
    else this.answerWith(status, head.headers, body);
  }

  /** Responds with JSON. */
  answer(status: number, body: Buffer): void {
    const response = this.take();
    if (response === undefined) return;
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": body.length,
      "x-request-id": this.requestId,
    });
    sendBody(response, body);
    unreadAnswers.add(response);
  }

  /**
   * Begins a streamed response. `onTaken` is called with the number of bytes that the client has taken. No stream
   * begins if nobody reads it, or if its head cannot be sent.
   */
  beginStream(head: StreamHead, onTaken: (bytes: number) => void): void {
    const { arrived } = this;
    const response = this.take();
    this.isAnswered = false;
    if (response === undefined) return;
    this.streamArrived = arrived;
    const status = head.status ?? 200;
    const headers = answerHeaders(head.headers ?? [], this.requestId, !WITHOUT_BODY.has(status));
    try {
      this.stream = new StreamedAnswer(
        response,
        status,
        headers,
        bodyFormat(head.format, this.wantsEvents),
        onTaken,
      );
    } catch (error) {
      this.sendRefused(response, error);
    }
  }

  /** Whether the request of a stream would still be admitted. */
  get isStillOpen(): boolean {
    return this.streamArrived?.isStillOpen() !== false;
  }

  /** The last piece has come. */
  endStream(): void {
    this.isAnswered = true;
    this.stream?.end();
  }

  abandon(): void {
    this.take();
    this.stream?.abandon();
    this.isAbandoned = true;
  }

  fail(error: ServiceError): void {
    const response = this.take();
    if (this.stream !== undefined) {
      ownFaults.record(error, this);
      this.stream.fail(toProblem(error, this.requestId));
    }
    if (response !== undefined) sendError(response, error, this.requestId);
  }

  private answerWith(status: number, headers: readonly [string, string][], body: Buffer): void {
    const response = this.take();
    if (response === undefined) return;
    const hasBody = !WITHOUT_BODY.has(status);
    try {
      writeHead(response, status, [
        ...answerHeaders(headers, this.requestId, false),
        ...(hasBody ? ["content-length", String(body.length)] : []),
      ]);
    } catch (error) {
      return this.sendRefused(response, error);
    }
    if (hasBody) sendBody(response, body);
    else response.end();
    unreadAnswers.add(response);
  }

  /** Node refused to write the head. The worker has checked the head (answer_heads.py), so this is rare. */
  private sendRefused(response: ServerResponse, error: unknown): void {
    response.statusMessage = "";
    const message = `the predictor's response cannot be sent: ${(error as Error).message}`;
    sendError(response, new ServiceError("prediction_failed", message), this.requestId);
  }

  /** Returns the response the first time, and undefined after that. */
  private take(): ServerResponse | undefined {
    const { response, arrived } = this;
    this.isAnswered = true;
    this.response = undefined;
    this.body = NO_BODY;
    this.head = undefined;
    this.arrived = undefined;
    arrived?.bodyDone();
    return response;
  }
}
