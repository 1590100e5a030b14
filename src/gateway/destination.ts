/** Chooses the API that responds at an address: its own, or one of those that a TrafficSplitter chooses from. */
import type { IncomingMessage } from "node:http";
import type { Destination } from "./arrival.ts";
import type { Endpoint } from "./replicas/endpoints.ts";

export type PredictionEndpoint = Exclude<Endpoint, { kind: "BatchAPI" }>;

/** Undefined if a splitter has nothing to choose from. */
export function destinationOf(
  endpoint: PredictionEndpoint,
  { headers }: IncomingMessage,
): Destination | undefined {
  const { address } = endpoint;
  if (endpoint.kind === "RealtimeAPI") return { address, pool: endpoint.pool };
  const { splitter } = endpoint;
  const pool = splitter.choose(headers["x-quern-sticky"] as string | undefined);
  return pool && { address, pool, shadow: splitter.chooseShadow(), isChosen: true };
}
