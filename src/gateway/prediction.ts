/** One request for a prediction on its way through the gateway: waiting, at a replica, or answered. */
import type { ServerResponse } from "node:http";
import { asServiceError, problemHeaders, ServiceError, toProblem } from "../contracts/errors.ts";
import type { WorkerFault } from "../protocol/messages.ts";

const NO_BODY = Buffer.alloc(0);

export class Prediction {
  /** Let go of when it has been answered. */
  body: Buffer;
  readonly deadlineMs: number;
  readonly requestId: string;
  isAnswered = false;
  /** The client left before the answer. */
  isAbandoned = false;
  /** Let go of with the answer: predictions outlive it in the order of deadlines, and must be small then. */
  private response: ServerResponse | undefined;

  /** `body` is PREDICT's. */
  constructor(response: ServerResponse, requestId: string, body: Buffer, deadlineMs: number) {
    this.response = response;
    this.requestId = requestId;
    this.body = body;
    this.deadlineMs = deadlineMs;
  }

  succeed(prediction: Buffer): void {
    this.answer(200, prediction);
  }

  /** A JSON answer with a status of the predictor's own choice. */
  answer(status: number, body: Buffer): void {
    const response = this.take();
    response?.writeHead(status, {
      "content-type": "application/json",
      "content-length": body.length,
      "x-request-id": this.requestId,
    });
    response?.end(body);
  }

  abandon(): void {
    this.take();
    this.isAbandoned = true;
  }

  fail(error: ServiceError): void {
    const response = this.take();
    if (response !== undefined) sendError(response, error, this.requestId);
  }

  /** The response, for the one answer; undefined when it has been given. */
  private take(): ServerResponse | undefined {
    const { response } = this;
    this.isAnswered = true;
    this.response = undefined;
    this.body = NO_BODY;
    return response;
  }
}

export function sendError(response: ServerResponse, error: unknown, requestId: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const problem = asServiceError(error);
  const body = JSON.stringify(toProblem(problem, requestId));
  response.writeHead(problem.status, {
    ...problemHeaders(problem),
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
  });
  response.end(body);
}

/** What a fault of user code is to the caller (decision 4.6). */
export function faultToError(fault: WorkerFault, apiName: string, exposeErrors: boolean): ServiceError {
  if (fault.stage === "payload") return new ServiceError("malformed_json", fault.message);
  const exposed = exposeErrors ? `\n${fault.traceback}` : "";
  if (fault.stage === "serialize") {
    return new ServiceError(
      "prediction_not_serializable",
      `the prediction cannot be written as JSON: ${fault.message}; return plain values from predict()${exposed}`,
    );
  }
  const cure = `\`quern logs ${apiName}\` has the traceback`;
  return new ServiceError(
    "prediction_failed",
    exposeErrors
      ? `${fault.type}: ${fault.message}; ${cure}${exposed}`
      : `predict() raised an exception; ${cure}`,
  );
}
