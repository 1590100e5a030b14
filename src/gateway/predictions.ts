/** Takes requests to real-time APIs, and holds their bodies: once each, and together no more than it should. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ServiceError } from "../contracts/errors.ts";
import { HELD_BODIES_BYTES_MAX } from "../contracts/limits.ts";
import type { AddressRoute } from "../contracts/routes.ts";
import { Arrival, type ArrivalDeps, bodyTooLarge, type Destination } from "./arrival.ts";
import type { Authorization } from "./authorization.ts";

const METHODS = "GET, HEAD, POST, OPTIONS";

export interface PredictionOptions {
  maxBodyBytes: number;
  authorization: Authorization;
}

export class Predictions {
  private readonly deps: ArrivalDeps;
  private heldBytes = 0;

  constructor(options: PredictionOptions) {
    this.deps = {
      ...options,
      hold: (bytes) => {
        this.heldBytes += bytes;
      },
    };
  }

  take(
    destination: Destination,
    exchange: { request: IncomingMessage; response: ServerResponse; requestId: string },
  ): void {
    const arrival = new Arrival(this.deps, destination, exchange);
    const problem = this.refusal(destination.address, exchange.request);
    if (problem === undefined) arrival.begin();
    else arrival.refuse(problem);
  }

  private refusal({ name }: AddressRoute, request: IncomingMessage): ServiceError | undefined {
    const { method, headers } = request;
    if (method !== "POST" && method !== "GET" && method !== "HEAD") {
      const message = `${method} is not allowed on ${name}; make a prediction with POST: \`quern predict ${name} FILE\``;
      return new ServiceError("method_not_allowed", message, { allow: METHODS });
    }
    const { maxBodyBytes } = this.deps;
    const announced = Number(headers["content-length"] ?? 0);
    if (announced > maxBodyBytes) return bodyTooLarge(maxBodyBytes);
    if (this.heldBytes + announced > HELD_BODIES_BYTES_MAX + maxBodyBytes) {
      const message = `the bodies of the requests under way have ${this.heldBytes} bytes together, which is as many as a gateway holds; try again later`;
      return new ServiceError("queue_full", message, { retryAfterS: 1 });
    }
    return undefined;
  }
}
