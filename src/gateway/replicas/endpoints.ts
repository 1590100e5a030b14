/**
 * Finds the API at an address. Real-time APIs and splitters have exactly one address; a batch API's jobs are below its
 * address.
 */
import type { AddressRoute, RouteSnapshot } from "../../contracts/routes.ts";
import type { ApiPool } from "./api-pool.ts";
import { Splitter } from "./splitter.ts";

export type Endpoint = { address: AddressRoute } & (
  | { kind: "RealtimeAPI"; pool: ApiPool }
  | { kind: "TrafficSplitter"; splitter: Splitter }
  | { kind: "BatchAPI" }
);

export class Endpoints {
  private readonly byPath = new Map<string, Endpoint>();
  private readonly byName = new Map<string, Endpoint>();
  /** The length of the longest address: no longer beginning of a path is looked up, however many segments it has. */
  private longest = 0;
  /** Whether this server needs keys. If it does, callers without one do not learn what is deployed. */
  readonly asksForKeys: boolean;

  constructor(snapshot: RouteSnapshot, poolOf: (name: string) => ApiPool | undefined) {
    this.asksForKeys =
      snapshot.has_keys || [...snapshot.apis, ...snapshot.splitters].some((route) => route.needs_key);
    for (const route of snapshot.apis) {
      const pool = poolOf(route.name);
      this.add(
        route.kind === "RealtimeAPI" && pool !== undefined
          ? { kind: "RealtimeAPI", address: route, pool }
          : { kind: "BatchAPI", address: route },
      );
    }
    for (const route of snapshot.splitters) {
      this.add({ kind: "TrafficSplitter", address: route, splitter: new Splitter(route, poolOf) });
    }
  }

  /** `path` has no query. A batch API's paths begin with its endpoint. */
  find(path: string): Endpoint | undefined {
    const exact = this.byPath.get(path);
    if (exact !== undefined) return exact;
    for (let end = path.lastIndexOf("/", this.longest); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const found = this.byPath.get(path.slice(0, end));
      if (found !== undefined)
        return found.kind === "BatchAPI" || end === path.length - 1 ? found : undefined;
    }
    return undefined;
  }

  /** Whether an API has this name, at whatever address. */
  knows(name: string): boolean {
    return this.byName.has(name);
  }

  /** The API as user code reaches it: by its name, at whatever address it is, and without a key. */
  named(name: string): Endpoint | undefined {
    return this.byName.get(name);
  }

  private add(endpoint: Endpoint): void {
    this.byPath.set(endpoint.address.endpoint, endpoint);
    this.longest = Math.max(this.longest, endpoint.address.endpoint.length);
    const { address } = endpoint;
    this.byName.set(address.name, { ...endpoint, address: { ...address, needs_key: false } });
  }
}
