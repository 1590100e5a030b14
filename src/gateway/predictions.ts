/** The hot path: a POST to a real-time API. Body bytes pass as they came; nothing is parsed here. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Holder } from "../access/permission.ts";
import { ServiceError } from "../contracts/errors.ts";
import { HELD_BODIES_BYTES_MAX } from "../contracts/limits.ts";
import type { AddressRoute } from "../contracts/routes.ts";
import type { PredictMeta } from "../protocol/messages.ts";
import type { ApiPool } from "./api-pool.ts";
import type { Authorization } from "./authorization.ts";
import { discardRest } from "./discard-rest.ts";
import { Prediction, sendError } from "./prediction.ts";

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;
const METHODS = "GET, HEAD, POST, OPTIONS";

export interface PredictionOptions {
  maxBodyBytes: number;
  authorization: Authorization;
}

/** Where a request goes: the address that was asked for, and the API that is to answer. */
export interface Destination {
  address: AddressRoute;
  pool: ApiPool;
  /** Gets a copy; its answer is dropped. */
  shadow?: ApiPool | undefined;
}

/** Takes requests to real-time APIs, and holds their bodies, once each and together no more than it should. */
export class Predictions {
  private readonly options: PredictionOptions;
  private heldBytes = 0;

  constructor(options: PredictionOptions) {
    this.options = options;
  }

  take(
    { address, pool, shadow }: Destination,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
  ): void {
    const startedMs = performance.now();
    const chunks: Buffer[] = [];
    let bytes = 0;
    let prediction: Prediction | undefined;
    response.on("close", () => {
      this.heldBytes -= bytes;
      pool.tally.answered(statusOf(response, prediction), performance.now() - startedMs);
      if (prediction !== undefined) pool.abandon(prediction);
    });
    const refuseWith = (problem: ServiceError) => {
      pool.tally.rejected(problem.code);
      refuse(request, response, problem, requestId);
    };
    const problem = this.refusal(address, request);
    if (problem !== undefined) return refuseWith(problem);
    const isSigned = address.needs_key && this.options.authorization.isSigned(request);
    const receive = () => {
      if (request.method !== "POST") return describe(address, request, response, requestId);
      const { maxBodyBytes } = this.options;
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        this.heldBytes += chunk.length;
        if (bytes > maxBodyBytes) refuse(request, response, tooLarge(maxBodyBytes), requestId);
        else chunks.push(chunk);
      });
      request.on("end", () => {
        if (response.headersSent) return;
        if (isSigned && !this.isSignerAllowed(address, request, response, chunks, refuseWith)) return;
        prediction = new Prediction(response, {
          startedMs,
          requestId,
          meta: metaOf(pool, request),
          body: chunks,
          wantsEvents: request.headers.accept?.includes("text/event-stream") ?? false,
        });
        if (shadow !== undefined) submitCopy(shadow, request, requestId, chunks);
        pool.submit(prediction);
      });
    };
    if (!address.needs_key || isSigned) return receive();
    this.authorize(address, request, response, receive, refuseWith);
  }

  /** A signature is over the whole body: it is looked at when that is here. */
  private isSignerAllowed(
    { name }: AddressRoute,
    request: IncomingMessage,
    response: ServerResponse,
    body: readonly Buffer[],
    refuseWith: (problem: ServiceError) => void,
  ): boolean {
    const { authorization } = this.options;
    try {
      const need = { scope: "predict", api: name } as const;
      authorization.assert(request, response, need, authorization.signer(request, body));
      return true;
    } catch (error) {
      refuseWith(error as ServiceError);
      return false;
    }
  }

  /** Goes on with `receive` at once, or when a token that was not seen before has been verified. */
  private authorize(
    { name }: AddressRoute,
    request: IncomingMessage,
    response: ServerResponse,
    receive: () => void,
    refuseWith: (problem: ServiceError) => void,
  ): void {
    const { authorization } = this.options;
    const judge = (holder: Holder | undefined) => {
      try {
        authorization.assert(request, response, { scope: "predict", api: name }, holder);
      } catch (error) {
        return refuseWith(error as ServiceError);
      }
      receive();
    };
    const holder = authorization.tokenHolder(request);
    if (holder instanceof Promise) holder.then(judge, refuseWith);
    else judge(holder);
  }

  private refusal({ name }: AddressRoute, request: IncomingMessage): ServiceError | undefined {
    const { method, headers } = request;
    if (method !== "POST" && method !== "GET" && method !== "HEAD") {
      const message = `${method} is not allowed on ${name}; make a prediction with POST: \`quern predict ${name} FILE\``;
      return new ServiceError("method_not_allowed", message, { allow: METHODS });
    }
    const { maxBodyBytes } = this.options;
    const announced = Number(headers["content-length"] ?? 0);
    if (announced > maxBodyBytes) return tooLarge(maxBodyBytes);
    if (this.heldBytes + announced > HELD_BODIES_BYTES_MAX + maxBodyBytes) {
      const message = `the bodies of the requests under way have ${this.heldBytes} bytes together, which is as many as a gateway holds; try again later`;
      return new ServiceError("queue_full", message, { retryAfterS: 1 });
    }
    return undefined;
  }
}

/** Of the answer, as the client saw it: 0 where it left before, 500 where a stream broke off. */
function statusOf(response: ServerResponse, prediction: Prediction | undefined): number {
  if (response.writableFinished) return response.statusCode;
  const isOurs = prediction?.isAnswered === true && !prediction.isAbandoned;
  return response.headersSent && isOurs ? 500 : 0;
}

/** The same request to another API, which nobody waits for. */
function submitCopy(
  pool: ApiPool,
  request: IncomingMessage,
  requestId: string,
  body: readonly Buffer[],
): void {
  const meta = metaOf(pool, request);
  pool.submit(
    new Prediction(undefined, { startedMs: performance.now(), requestId, meta, body, wantsEvents: false }),
  );
}

function tooLarge(maxBodyBytes: number): ServiceError {
  return new ServiceError(
    "body_too_large",
    `the body has more than ${maxBodyBytes} bytes; start the server with a larger --max-body, or send less`,
  );
}

/** Answers at once: the rest of the body is not wanted. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
  requestId: string,
): void {
  request.removeAllListeners("data");
  sendError(response, error, requestId);
  discardRest(request);
}

/** GET says what the address is. */
function describe(
  { name, endpoint }: AddressRoute,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
): void {
  const message = "make a prediction by sending a POST request to this endpoint with a JSON payload";
  const body = Buffer.from(JSON.stringify({ message, api: name, endpoint }));
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": body.length,
    "x-request-id": requestId,
  });
  response.end(request.method === "HEAD" ? undefined : body);
  discardRest(request);
}

/** What is not JSON, and what the predictor declares, as JSON; undefined for the common case. */
function metaOf(pool: ApiPool, { headers, url }: IncomingMessage): string | undefined {
  const { wants } = pool.route;
  const type = headers["content-type"] ?? "application/octet-stream";
  const isJson = JSON_TYPE.test(type);
  if (isJson && wants.length === 0) return undefined;
  const meta: PredictMeta = {};
  if (!isJson) meta.content_type = type;
  if (wants.includes("headers")) meta.headers = headers;
  if (wants.includes("query_params"))
    meta.query_params = Object.fromEntries(new URL(url!, "http://gateway").searchParams);
  return JSON.stringify(meta);
}
