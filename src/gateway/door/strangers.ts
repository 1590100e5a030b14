/**
 * Callers without a key, on a server that needs keys. They get the same response for an address that does not exist,
 * one that is closed to them, and one that needs a key (docs/decisions/0021-what-strangers-learn.md).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServiceError } from "../../contracts/errors.ts";
import { STRANGERS_ASKED_FOR_MAX } from "../../contracts/limits/requests.ts";
import { refuse } from "../answers/refuse.ts";
import { refusal } from "./authorization.ts";
import { allowAnyOrigin, answerOptions } from "./cors.ts";

/** `why`: what is wrong with the token or signature of a caller who presents one instead. */
export function refuseStranger(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  why: ServiceError = refusal(request),
): void {
  allowAnyOrigin(request, response);
  // As at every address of a real-time API: browsers send no key with a preflight.
  if (request.method === "OPTIONS")
    return answerOptions(request, response, { isAllowed: true, isListed: false, requestId });
  refuse(request, response, why, requestId);
}

/**
 * Bounds how many unknown names a gateway asks the controller about at once: asking costs ten times as much as
 * refusing.
 */
export class StrangersAskedFor {
  private atOnce = 0;

  /** False if the controller must not be asked. */
  take(response: ServerResponse): boolean {
    if (this.atOnce >= STRANGERS_ASKED_FOR_MAX || response.destroyed) return false;
    this.atOnce++;
    response.once("close", () => this.atOnce--);
    return true;
  }
}
