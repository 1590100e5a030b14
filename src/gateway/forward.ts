/**
 * Forwards everything that is not a prediction to the controller, as a stream in both directions. While the controller
 * restarts, requests wait for it for a few seconds instead of failing.
 */
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { BodyBudget } from "../access/body-budget.ts";
import { HeldBody } from "../access/held-body.ts";
import { DASHBOARD_HEADER } from "../access/sessions.ts";
import { contain } from "../base/boundary.ts";
import { ServiceError } from "../contracts/errors.ts";
import { encodeForwarded, FORWARDED_HEADER, type Forwarded } from "../contracts/forwarded.ts";
import { FORWARDED_WAITING_BODY_BYTES, SMALL_BODY_BYTES } from "../contracts/limits/requests.ts";
import { NOT_EMBEDDED } from "./answers/answer-headers.ts";
import { closeUnasked, discardRest } from "./answers/discard-rest.ts";
import { sendError } from "./answers/send-error.ts";
import { unreadAnswers } from "./answers/unread-answers.ts";
import type { Sender } from "./connections/controller-places.ts";
import type { ControllerConnections } from "./controller-connections.ts";
import { pathEnd } from "./target-errors.ts";

/** Headers of one hop only (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set(["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"]);

/** What a string of a header takes besides its text, and its places in both lists of headers. */
const STRING_BYTES = 60;

export interface ForwardOptions {
  controller: ControllerConnections;
  /** What waits of a body counts here. */
  bodies: BodyBudget;
  /** Whose turn the request takes. */
  sender: Sender;
  requestId: string;
  forwarded: Forwarded;
  /** The path at the controller, which addresses a batch API by its name. */
  path: string;
  /** Responds instead if the controller does not admit the caller, or cannot be reached. */
  onNothing?: (() => void) | undefined;
  /** The body, if it was already read. */
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
  const connection = await connected(request, response, options);
  // The client left while we connected: no "close" event will follow.
  if (response.destroyed) {
    connection?.socket.destroy();
    return;
  }
  if (connection === undefined) return onNothing();
  const { socket, answered } = connection;
  const { method } = request;
  const headers = headersOf(request, options);
  const upstream = httpRequest({ createConnection: () => socket, method, path: options.path, headers });
  const pass = (answer: IncomingMessage) => {
    answered();
    if (answer.statusCode === 401 && options.onNothing !== undefined) {
      request.unpipe(upstream);
      socket.destroy();
      return options.onNothing();
    }
    const answerHeaders = Object.fromEntries(
      Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.has(name)),
    );
    closeEarly();
    const shown = { ...NOT_EMBEDDED, ...answerHeaders, "x-request-id": requestId };
    response.writeHead(answer.statusCode ?? 502, shown);
    response.flushHeaders();
    if (!request.complete) {
      request.unpipe(upstream);
      discardRest(request);
    }
    answer.pipe(response);
    // After `pipe` has written, and after it has ended the response.
    answer.on("data", () => {
      if (response.writableNeedDrain) unreadAnswers.add(response, answer);
    });
    answer.on("end", () => unreadAnswers.add(response, answer));
    answer.on("error", () => response.destroy());
    answer.on("aborted", () => response.destroy());
  };
  upstream.on("response", (answer) => contain("the controller's answer", () => pass(answer), fail));
  // The controller sends 100 Continue when it wants the body.
  upstream.on("continue", () => {
    isAsked = true;
    response.writeContinue();
  });
  upstream.on("error", () => {
    // Without a client, its own leaving is the error.
    if (!response.headersSent && !response.destroyed) onNothing();
  });
  response.on("close", () => socket.destroy());
  if (options.body !== undefined) {
    upstream.end(Buffer.concat(options.body));
    return;
  }
  sendBody(request, upstream);
}

function sendBody(request: IncomingMessage, upstream: ClientRequest): void {
  if (!hasBody(request)) {
    request.pipe(upstream);
    return;
  }
  // The controller judges the head before any of the body arrives.
  upstream.flushHeaders();
  // A client may send its body unasked. A controller that refuses it closes the connection, and its answer would be lost.
  if (request.headers.expect === undefined) request.pipe(upstream);
  else upstream.on("continue", () => request.pipe(upstream));
}

/** The client's headers without those of one hop, and with those that only a gateway may set. */
function headersOf(
  request: IncomingMessage,
  { body, requestId, forwarded }: ForwardOptions,
): Record<string, string | string[]> {
  const passed = Object.entries(request.headers).filter(
    ([name]) => !HOP_BY_HOP.has(name) && !isOurs(name) && !(name === "expect" && body),
  );
  return {
    ...(Object.fromEntries(passed) as Record<string, string | string[]>),
    "x-request-id": requestId,
    // Only gateways connect to the controller, which reads Host as part of a URL. The client's value has no use there.
    host: "controller",
    [FORWARDED_HEADER]: encodeForwarded(forwarded),
    // Not `close`: the controller would end the connection after an early response, which would then be lost.
    connection: "keep-alive",
  };
}

/** Only the dashboard's own header comes from clients. */
function isOurs(name: string): boolean {
  return name.startsWith("x-quern-") && name !== DASHBOARD_HEADER;
}

/** Undefined as in `ControllerConnections.connect`. */
async function connected(request: IncomingMessage, response: ServerResponse, options: ForwardOptions) {
  const waiting = waitingBody(request, options);
  try {
    const { controller, sender, body } = options;
    return await controller.connect(sender, () => response.destroyed, isLarge(request, body));
  } finally {
    waiting.release();
  }
}

/** Throws `queue_full` if the budget of bodies lacks what the request holds while it waits: its head, and its body. */
function waitingBody(request: IncomingMessage, { bodies, sender, path, body }: ForwardOptions): HeldBody {
  const held = new HeldBody(bodies, {
    sender: sender.name,
    api: path.slice(0, pathEnd(path)).split("/")[1]!,
  });
  held.grow(headBytes(request.rawHeaders));
  if (body !== undefined || request.complete || !hasBody(request)) return held;
  const announced = Number(request.headers["content-length"] ?? FORWARDED_WAITING_BODY_BYTES);
  held.grow(Math.min(announced, FORWARDED_WAITING_BODY_BYTES));
  return held;
}

/** Each header is kept twice, as it came and by its name. */
function headBytes(rawHeaders: readonly string[]): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length + STRING_BYTES, 0);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Whether the body is not small, or may not be: nobody knows the length of one in chunks. */
export function isLarge(
  { headers }: Pick<IncomingMessage, "headers">,
  body: readonly Buffer[] | undefined,
): boolean {
  if (body !== undefined) return body.reduce((sum, { length }) => sum + length, 0) > SMALL_BODY_BYTES;
  return (
    headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > SMALL_BODY_BYTES
  );
}

function unavailable(): ServiceError {
  return new ServiceError(
    "server_unavailable",
    "the controller is starting or stopping; try again in a second",
    { retryAfterS: 1 },
  );
}
