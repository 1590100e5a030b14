/** Refuses requests of which only the head is wanted. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { parseNoMore } from "../connections/parse-no-more.ts";
import { closeUnasked, discardRest } from "./discard-rest.ts";
import { sendError } from "./send-error.ts";

/** Responds without reading the body. Never throws. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  requestId: string,
): void {
  closeUnasked(request, response);
  sendError(response, error, requestId);
  discardRest(request);
}

/** The same for a request whose end or host another server may read differently: no request follows it. */
export function refuseLast(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  requestId: string,
): void {
  response.setHeader("connection", "close");
  parseNoMore(request.socket);
  refuse(request, response, error, requestId);
}
