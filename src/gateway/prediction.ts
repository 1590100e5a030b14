/** One request for a prediction on its way through the gateway: waiting, at a replica, streaming, or answered. */
import type { ServerResponse } from "node:http";
import { reportFault } from "../base/boundary.ts";
import { asServiceError, problemHeaders, ServiceError, toProblem } from "../contracts/errors.ts";
import type { ReplicaRoute } from "../contracts/routes.ts";
import type { AnswerHead, StreamHead, WorkerFault } from "../protocol/messages.ts";
import { ownFaults } from "./own-faults.ts";
import { bodyFormat, StreamedAnswer } from "./streamed-answer.ts";

const NO_BODY: readonly Buffer[] = [];
/** Beyond this a copy costs more than a second buffer in the write. */
const JOINED_BYTES_MAX = 4096;
/** Ours to set, or of one hop only: what a predictor says of these is left out. */
const NOT_THE_PREDICTORS = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-request-id",
]);
/** Their answers end with the head, and have no length: whoever believed one would wait for it (RFC 9110, section 8.6). */
const WITHOUT_BODY = new Set([204, 304]);

/** The replica that has a request. */
export interface Holder {
  readonly route: ReplicaRoute;
  has(prediction: Prediction): boolean;
  /** Nobody waits for it any more. */
  abandon(prediction: Prediction): void;
}

/** The request as it came. */
interface Owner {
  /** The body is needed no more. */
  bodyDone(): void;
  /** Whether what let it in still does: a stream ends with that. */
  isStillOpen(): boolean;
}

export class Prediction {
  /** Of PREDICT, in the parts that came from the client. Let go of when it has been answered. */
  body: readonly Buffer[];
  /** Of META, where it is needed. */
  readonly meta: string | undefined;
  /** When it came (performance.now()). */
  readonly startedMs: number;
  readonly requestId: string;
  /** The client asked for server-sent events. */
  readonly wantsEvents: boolean;
  /** When its time is over (performance.now()); whoever watches it sets this. */
  deadlineMs = Number.POSITIVE_INFINITY;
  isAnswered = false;
  /** The client left before the answer. */
  isAbandoned = false;
  /** The replica that it was sent to last. */
  holder: Holder | undefined;
  /** Once the first piece of a streamed answer has come. */
  stream: StreamedAnswer | undefined;
  /** Of a stream, while it lasts: see `isStillOpen`. */
  private streamOwner: Owner | undefined;
  /** Let go of with the answer, as the response is: lists keep a prediction for longer. A copy for a shadow has none. */
  private owner: Owner | undefined;
  /** Let go of with the answer. */
  private response: ServerResponse | undefined;

  /** Without a response for the copy of a request, whose answer is dropped. */
  constructor(
    response: ServerResponse | undefined,
    request: {
      startedMs: number;
      requestId: string;
      meta: string | undefined;
      body: readonly Buffer[];
      wantsEvents: boolean;
      owner?: Owner;
    },
  ) {
    this.response = response;
    this.startedMs = request.startedMs;
    this.requestId = request.requestId;
    this.meta = request.meta;
    this.body = request.body;
    this.wantsEvents = request.wantsEvents;
    this.owner = request.owner;
  }

  /** The predictor's answer. */
  succeed(head: AnswerHead | undefined, body: Buffer): void {
    const status = head?.status ?? 200;
    if (head?.headers === undefined) this.answer(status, body);
    else this.answerWith(status, head.headers, body);
  }

  /** A JSON answer. */
  answer(status: number, body: Buffer): void {
    const response = this.take();
    response?.writeHead(status, {
      "content-type": "application/json",
      "content-length": body.length,
      "x-request-id": this.requestId,
    });
    // One write for head and body: Node joins texts, and in Latin-1 each character is a byte as it came.
    if (body.length <= JOINED_BYTES_MAX) response?.end(body.toString("latin1"), "latin1");
    else response?.end(body);
  }

  /** `onRoom`: the client has taken so many bytes of it. Where nobody reads it, or it cannot be sent, there is no stream. */
  beginStream(head: StreamHead, onRoom: (bytes: number) => void): void {
    const { owner } = this;
    const response = this.take();
    this.isAnswered = false;
    if (response === undefined) return;
    this.streamOwner = owner;
    const status = head.status ?? 200;
    const headers = answerHeaders(head.headers ?? [], this.requestId, !WITHOUT_BODY.has(status));
    try {
      this.stream = new StreamedAnswer(
        response,
        status,
        headers,
        bodyFormat(head.format, this.wantsEvents),
        onRoom,
      );
    } catch (error) {
      this.sendRefused(response, error);
    }
  }

  /** Of a stream: whether what let its request in still does. */
  get isStillOpen(): boolean {
    return this.streamOwner?.isStillOpen() !== false;
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
      response.writeHead(status, [
        ...answerHeaders(headers, this.requestId, false),
        ...(hasBody ? ["content-length", String(body.length)] : []),
      ]);
    } catch (error) {
      return this.sendRefused(response, error);
    }
    response.end(hasBody ? body : undefined);
  }

  /** Node would not write the head. The worker has checked it (answer_heads.py), so that this is rare. */
  private sendRefused(response: ServerResponse, error: unknown): void {
    response.statusMessage = "";
    const message = `the predictor's response cannot be sent: ${(error as Error).message}`;
    sendError(response, new ServiceError("prediction_failed", message), this.requestId);
  }

  /** The response, for the one answer; undefined when it has been given. */
  private take(): ServerResponse | undefined {
    const { response, owner } = this;
    this.isAnswered = true;
    this.response = undefined;
    this.body = NO_BODY;
    this.owner = undefined;
    owner?.bodyDone();
    return response;
  }
}

/** As `writeHead` takes headers that may come several times: names and values in turn. */
function answerHeaders(
  headers: readonly [string, string][],
  requestId: string,
  keepsLength: boolean,
): string[] {
  const kept = headers.filter(([name]) => {
    const lower = name.toLowerCase();
    return !NOT_THE_PREDICTORS.has(lower) || (keepsLength && lower === "content-length");
  });
  return [...kept.flat(), "x-request-id", requestId];
}

/** Never throws: where the answer cannot be written, the connection ends. */
export function sendError(response: ServerResponse, error: unknown, requestId: string): void {
  const problem = asServiceError(error);
  const { method, url } = response.req;
  ownFaults.record(problem, { requestId, method: method!, url: url! });
  if (response.headersSent) {
    response.destroy();
    return;
  }
  try {
    writeProblem(response, problem, requestId);
  } catch (again) {
    reportFault(again, "an error's answer");
    response.destroy();
  }
}

function writeProblem(response: ServerResponse, problem: ServiceError, requestId: string): void {
  const body = JSON.stringify(toProblem(problem, requestId));
  response.writeHead(problem.status, {
    ...problemHeaders(problem),
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
  });
  response.end(body);
}

/** What a fault of user code is to the caller (docs/contract/predictor.md#exceptions). */
export function faultToError(fault: WorkerFault, apiName: string, exposeErrors: boolean): ServiceError {
  if (fault.stage === "payload")
    return new ServiceError(
      fault.type === "JsonError" ? "malformed_json" : "malformed_payload",
      fault.message,
    );
  const exposed = exposeErrors ? `\n${fault.traceback}` : "";
  if (fault.stage === "serialize") {
    return new ServiceError(
      "prediction_not_serializable",
      `the prediction cannot be sent: ${fault.message}; return plain values from predict()${exposed}`,
    );
  }
  if (fault.stage === "response")
    return new ServiceError("prediction_failed", `the predictor's response cannot be sent: ${fault.message}`);
  const cure = `\`quern logs ${apiName}\` has the traceback`;
  return new ServiceError(
    "prediction_failed",
    exposeErrors
      ? `${fault.type}: ${fault.message}; ${cure}${exposed}`
      : `predict() raised an exception; ${cure}`,
  );
}
