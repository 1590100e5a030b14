/**
 * Copies of requests for the shadows of TrafficSplitters. Their bodies have a small budget of their own: a shadow that
 * hangs takes nothing from the API that responds. A copy beyond the budget is dropped, and counted.
 */
import { BodyBudget } from "../../access/body-budget.ts";
import { type ArrivedRequest, type MetaSource, PredictionRequest } from "../answers/prediction-request.ts";
import type { ApiPool } from "./api-pool.ts";

export class ShadowCopies {
  private readonly budget: BodyBudget;

  constructor(most: number) {
    this.budget = new BodyBudget({ most, forSmall: 0, smallBytes: 0 });
  }

  /** Sends a copy of a request, of `bytes`, if it fits. The shadow pays for it, so that others get theirs. */
  send(shadow: ApiPool, arrived: ArrivedRequest, bytes: number, head: MetaSource): void {
    const { name } = shadow.route;
    const owner = { sender: name, api: name };
    if (!this.budget.reserve(bytes, owner)) return shadow.tally.rejected("queue_full");
    const { startedMs, requestId, parts } = arrived;
    const bodyDone = () => this.budget.release(bytes, owner);
    const copy = { startedMs, requestId, parts, bodyDone, isStillOpen: () => true };
    shadow.submit(new PredictionRequest(undefined, copy, head, false));
  }
}
