/**
 * Callers without a key, on a server that asks for keys: an address that is not there, one that is not for them and one that needs a key get the
 * same answer (docs/decisions/0021-what-strangers-learn.md).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { STRANGERS_ASKED_FOR_MAX } from "../contracts/limits.ts";
import { refusal } from "./authorization.ts";
import { allowAnyOrigin, answerOptions } from "./cors.ts";
import { refuse } from "./refuse.ts";

export function refuseStranger(request: IncomingMessage, response: ServerResponse, requestId: string): void {
  allowAnyOrigin(request, response);
  // As every address of a real-time API does: browsers send no key with their preflights.
  if (request.method === "OPTIONS")
    return answerOptions(request, response, { isAllowed: true, isListed: false });
  refuse(request, response, refusal(request), requestId);
}

/** Of names that a gateway has not heard of, the controller is asked for a few at a time: it costs ten times as much as a refusal. */
export class StrangersAskedFor {
  private atOnce = 0;

  /** False where the controller is not to be asked. */
  take(response: ServerResponse): boolean {
    if (this.atOnce >= STRANGERS_ASKED_FOR_MAX || response.destroyed) return false;
    this.atOnce++;
    response.once("close", () => this.atOnce--);
    return true;
  }
}
