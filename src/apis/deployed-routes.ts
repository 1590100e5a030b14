/** Publishes the routes that follow from the deployed versions, the ready replicas and the keys. */
import type { Keys, KeyUsers } from "../access/keys.ts";
import type { RefusedRoute } from "../contracts/routes.ts";
import type { Database } from "../database/database.ts";
import type { ApiReader } from "./api-reader.ts";
import { toRoute, toSplitterRoute } from "./api-routes.ts";
import type { RoutePublisher } from "./publish-routes.ts";
import { hasPredictor, isSplitter, readDeployed } from "./records/api-rows.ts";
import type { ApiReplicas } from "./serving/api-replicas.ts";

export interface DeployedRoutesDeps {
  db: Database;
  replicas: ApiReplicas;
  routes: RoutePublisher;
  keys: Keys;
  deployed: ApiReader;
  /** How many gateways the server has. */
  gateways: number;
}

export class DeployedRoutes implements KeyUsers {
  private readonly deps: DeployedRoutesDeps;
  /** Never rejects. */
  private current: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  constructor(deps: DeployedRoutesDeps) {
    this.deps = deps;
  }

  /**
   * One after the other, so that a former state never replaces a newer one. Those that ask while one is being published
   * share the next one.
   */
  publish(): Promise<void> {
    this.next ??= this.current.then(() => {
      this.next = undefined;
      const published = this.publishNow();
      this.current = published.catch(() => {});
      return published;
    });
    return this.next;
  }

  private async publishNow(): Promise<void> {
    const { db, replicas, routes, keys, deployed } = this.deps;
    const { versions, unreadable } = await readDeployed(db);
    const { isAny } = keys;
    const forGateways = { keys: keys.forGateways(), has_keys: keys.areAny };
    const missing = unreadable.map(({ name, why }) => ({ name, detail: why }));
    // This controller has just started: the last route serves until it is known which replicas do.
    const realtime = versions.filter(({ config }) => config.kind === "RealtimeAPI").map(({ name }) => name);
    const unknown = realtime.filter((name) => routes.has(name) && replicas.isUnsettled?.(name));
    const known = versions.filter(({ name }) => !unknown.includes(name));
    const apis = routesOf(known.filter(hasPredictor), missing, (version) => {
      const group = replicas.group(version.name);
      const serving = { replicas: group?.serving ?? [], wanted: group?.wanted ?? 0 };
      return toRoute(version, serving, deployed.stateOf(version).status, isAny);
    });
    const splitters = routesOf(versions.filter(isSplitter), missing, (version) =>
      toSplitterRoute(version, isAny),
    );
    routes.publish({ apis, splitters, ...forGateways }, missing, unknown);
  }

  async keysChanged(): Promise<void> {
    await this.publish();
    await this.deps.routes.waitUntilApplied(this.deps.gateways);
  }
}

/** Collects routes. A version whose route throws is added to `missing`. */
function routesOf<Version extends { name: string }, Route>(
  versions: readonly Version[],
  missing: RefusedRoute[],
  routeOf: (version: Version) => Route,
): Route[] {
  return versions.flatMap((version) => {
    try {
      return [routeOf(version)];
    } catch (error) {
      missing.push({ name: version.name, detail: (error as Error).message });
      return [];
    }
  });
}
