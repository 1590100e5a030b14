/** Takes requests to real-time APIs, checks their method and announced size, and hands each to an `Arrival`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ServiceError } from "../contracts/errors.ts";
import type { AddressRoute } from "../contracts/routes.ts";
import { Arrival, type ArrivalDeps } from "./arrival.ts";
import { bodyTooLarge } from "./arriving-body.ts";
import type { Destination } from "./destination.ts";

const METHODS = "GET, HEAD, POST, OPTIONS";

export class Predictions {
  private readonly deps: ArrivalDeps;

  constructor(deps: ArrivalDeps) {
    this.deps = deps;
  }

  take(
    destination: Destination,
    exchange: { request: IncomingMessage; response: ServerResponse; requestId: string },
  ): void {
    const arrival = new Arrival(this.deps, destination, exchange);
    arrival.begin(this.refusal(destination.address, exchange.request));
  }

  private refusal({ name }: AddressRoute, request: IncomingMessage): ServiceError | undefined {
    const { method, headers } = request;
    if (method !== "POST" && method !== "GET" && method !== "HEAD") {
      const message = `${method} is not allowed on ${name}; make a prediction with POST: \`quern predict ${name} FILE\``;
      return new ServiceError("method_not_allowed", message, { allow: METHODS });
    }
    const { maxBodyBytes } = this.deps;
    const announced = Number(headers["content-length"] ?? 0);
    return announced > maxBodyBytes ? bodyTooLarge(maxBodyBytes) : undefined;
  }
}
