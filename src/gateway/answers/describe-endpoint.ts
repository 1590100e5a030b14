/** The response to GET at a real-time API: says what the address is. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressRoute } from "../../contracts/routes.ts";
import { NOT_EMBEDDED } from "./answer-headers.ts";
import { discardRest } from "./discard-rest.ts";
import { unreadAnswers } from "./unread-answers.ts";

export function describeEndpoint(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  { name, endpoint }: AddressRoute,
): void {
  const message = "make a prediction by sending a POST request to this endpoint with a JSON payload";
  const body = Buffer.from(JSON.stringify({ message, api: name, endpoint }));
  response.writeHead(200, {
    ...NOT_EMBEDDED,
    "content-type": "application/json",
    "content-length": body.length,
    "x-request-id": requestId,
  });
  response.end(request.method === "HEAD" ? undefined : body);
  unreadAnswers.add(response);
  discardRest(request);
}
