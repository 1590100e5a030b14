/**
 * The hot path: a POST to a real-time API. Body bytes pass as they came; nothing is parsed here. Only JSON is taken in
 * this release (decision 4.3 has the rest).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { keyOf } from "../access/admin-token.ts";
import { assertPermission } from "../access/permission.ts";
import { ServiceError } from "../contracts/errors.ts";
import { encodePredict } from "../protocol/messages.ts";
import type { ApiPool } from "./api-pool.ts";
import { discardRest } from "./discard-rest.ts";
import { Prediction, sendError } from "./prediction.ts";
import type { GatewayKey } from "./route-table.ts";

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;

export interface PredictionOptions {
  maxBodyBytes: number;
  /** By the key's hash. */
  findKey: (sha256: string) => GatewayKey | undefined;
}

export function takePrediction(
  pool: ApiPool,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  { maxBodyBytes, findKey }: PredictionOptions,
): void {
  const problem = refusal(pool, request, maxBodyBytes) ?? keyProblem(pool, request, findKey);
  if (problem !== undefined) return refuse(request, response, problem, requestId);
  const deadlineMs = performance.now() + pool.route.timeout_ms;
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) refuse(request, response, tooLarge(maxBodyBytes), requestId);
    else chunks.push(chunk);
  });
  request.on("end", () => {
    if (response.headersSent) return;
    const payload = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    const prediction = new Prediction(
      response,
      requestId,
      encodePredict(metaOf(pool, request), payload),
      deadlineMs,
    );
    response.on("close", () => pool.abandon(prediction));
    pool.submit(prediction);
  });
}

function keyProblem(
  pool: ApiPool,
  { headers }: IncomingMessage,
  findKey: PredictionOptions["findKey"],
): ServiceError | undefined {
  const { needs_key, name } = pool.route;
  if (!needs_key) return undefined;
  const key = keyOf({ authorization: headers.authorization, "x-api-key": headers["x-api-key"] as string });
  try {
    assertPermission(key, findKey, { scope: "predict", api: name });
    return undefined;
  } catch (error) {
    return error as ServiceError;
  }
}

function refusal(pool: ApiPool, request: IncomingMessage, maxBodyBytes: number): ServiceError | undefined {
  if (request.method !== "POST") {
    const name = pool.route.name;
    const message = `${request.method} is not allowed on ${name}; make a prediction with POST and a JSON body: \`quern predict ${name} FILE\``;
    return new ServiceError("method_not_allowed", message, { allow: "POST" });
  }
  const type = request.headers["content-type"];
  if (type === undefined || !JSON_TYPE.test(type)) {
    return new ServiceError(
      "unsupported_media_type",
      `the content type ${type === undefined ? "is missing" : `"${type}" is not supported yet`}; send the header Content-Type: application/json`,
    );
  }
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) return tooLarge(maxBodyBytes);
  return undefined;
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

/** Query and headers as JSON, for the predictors that declare them. */
function metaOf(pool: ApiPool, request: IncomingMessage): string | undefined {
  const { wants } = pool.route;
  if (wants.length === 0) return undefined;
  const meta: Record<string, unknown> = {};
  if (wants.includes("headers")) meta.headers = request.headers;
  if (wants.includes("query_params"))
    meta.query_params = Object.fromEntries(new URL(request.url!, "http://gateway").searchParams);
  return JSON.stringify(meta);
}
