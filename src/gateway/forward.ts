/**
 * Everything that is no prediction goes to the controller, as a stream both ways. While the controller restarts,
 * requests wait for it a few seconds instead of failing.
 */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { contain } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import { ServiceError } from "../contracts/errors.ts";
import { encodeForwarded, FORWARDED_HEADER, type Forwarded } from "../contracts/forwarded.ts";
import { closeUnasked, discardRest } from "./discard-rest.ts";
import { sendError } from "./prediction.ts";

const WAIT_MS = 5_000;
const RETRY_MS = 20;
/** Of one hop only (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set(["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"]);

export interface ForwardOptions {
  controllerSocket: string;
  requestId: string;
  forwarded: Forwarded;
  /** At the controller, where a batch API is known by its name. */
  path: string;
  /** Answers instead where nothing is there for the caller, or nobody can say so. */
  onNothing?: (() => void) | undefined;
  /** The body, where it has been read already. */
  body?: readonly Buffer[] | undefined;
}

export async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardOptions,
): Promise<void> {
  let isAsked = false;
  const closeEarly = () => {
    if (!isAsked && !request.complete) closeUnasked(request, response);
  };
  const fail = (error: unknown) => {
    closeEarly();
    sendError(response, error, options.requestId);
  };
  const { requestId, onNothing = () => fail(unavailable()) } = options;
  const socket = await connectWithin(options.controllerSocket, WAIT_MS, () => response.destroyed);
  // The client has left while we connected: no "close" will come any more.
  if (response.destroyed) {
    socket?.destroy();
    return;
  }
  if (socket === undefined) return onNothing();
  const { method } = request;
  const headers = headersOf(request, options);
  const upstream = httpRequest({ createConnection: () => socket, method, path: options.path, headers });
  const pass = (answer: IncomingMessage) => {
    if (answer.statusCode === 401 && options.onNothing !== undefined) {
      request.unpipe(upstream);
      socket.destroy();
      return options.onNothing();
    }
    const answerHeaders = Object.fromEntries(
      Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.has(name)),
    );
    closeEarly();
    response.writeHead(answer.statusCode ?? 502, { ...answerHeaders, "x-request-id": requestId });
    response.flushHeaders();
    if (!request.complete) {
      request.unpipe(upstream);
      discardRest(request);
    }
    answer.pipe(response);
    answer.on("error", () => response.destroy());
    answer.on("aborted", () => response.destroy());
  };
  upstream.on("response", (answer) => contain("the controller's answer", () => pass(answer), fail));
  // The controller asks for the body once it wants it.
  upstream.on("continue", () => {
    isAsked = true;
    response.writeContinue();
  });
  upstream.on("error", () => {
    if (!response.headersSent) onNothing();
  });
  response.on("close", () => socket.destroy());
  if (options.body !== undefined) {
    upstream.end(Buffer.concat(options.body));
    return;
  }
  // Its head is judged before any of the body comes.
  if (hasBody(request)) upstream.flushHeaders();
  request.pipe(upstream);
}

/** Without those of one hop; with those that only we say. */
function headersOf(
  request: IncomingMessage,
  { body, requestId, forwarded }: ForwardOptions,
): Record<string, string | string[]> {
  const passed = Object.entries(request.headers).filter(
    ([name]) => !HOP_BY_HOP.has(name) && !name.startsWith("x-quern-") && !(name === "expect" && body),
  );
  return {
    ...(Object.fromEntries(passed) as Record<string, string | string[]>),
    "x-request-id": requestId,
    // Only gateways speak to the controller: what the client said is of no use there, and is read as part of a URL.
    host: "controller",
    [FORWARDED_HEADER]: encodeForwarded(forwarded),
    // Not `close`: the controller would end the connection behind an early answer, which is then lost.
    connection: "keep-alive",
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function unavailable(): ServiceError {
  return new ServiceError(
    "server_unavailable",
    "the controller is starting or stopping; try again in a second",
    { retryAfterS: 1 },
  );
}

/** Connects to a Unix socket, again and again while nobody listens. */
async function connectWithin(
  path: string,
  waitMs: number,
  isOver: () => boolean,
): Promise<Socket | undefined> {
  for (
    const deadline = performance.now() + waitMs;
    performance.now() < deadline && !isOver();
    await delay(RETRY_MS)
  ) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const attempt = connect({ path });
      attempt.once("connect", () => resolve(attempt)).once("error", () => resolve(undefined));
    });
    if (socket !== undefined) return socket;
  }
  return undefined;
}
