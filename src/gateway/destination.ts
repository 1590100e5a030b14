/** Chooses the API that responds at an address: its own, or one of those that a TrafficSplitter chooses from. */
import type { IncomingMessage } from "node:http";
import type { AddressRoute } from "../contracts/routes.ts";
import type { ApiPool } from "./replicas/api-pool.ts";
import type { Endpoint } from "./replicas/endpoints.ts";

/** The destination of a request: the address that the client used, and the API that responds. */
export interface Destination {
  address: AddressRoute;
  pool: ApiPool;
  /** True if a TrafficSplitter chose the API; the response then names it. */
  isChosen?: boolean;
  /** Gets a copy of the request; its response is dropped. */
  shadow?: ApiPool | undefined;
}

export type PredictionEndpoint = Exclude<Endpoint, { kind: "BatchAPI" }>;

/** Undefined if a splitter has nothing to choose from. */
export function destinationOf(
  endpoint: PredictionEndpoint,
  { headers }: IncomingMessage,
): Destination | undefined {
  // An endpoint of one API is a destination as it is: nothing is allocated.
  if (endpoint.kind === "RealtimeAPI") return endpoint;
  const { address, splitter } = endpoint;
  const pool = splitter.choose(headers["x-quern-sticky"] as string | undefined);
  return pool && { address, pool, shadow: splitter.chooseShadow(), isChosen: true };
}
