/**
 * The gateway's view of what is deployed: the newest snapshot, from the file at the start, then from the controller's
 * stream while there is one: a whole snapshot, then what changes. An older snapshot is never applied. If a route cannot
 * be read, the one before it serves on, and the gateway reports this to the controller.
 */

import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { principalOf } from "../../access/keys.ts";
import type { Principal } from "../../access/permission.ts";
import { contain, reportFault } from "../../base/boundary.ts";
import { delay, wallMs } from "../../base/clock.ts";
import { newToken } from "../../base/ids.ts";
import { processLog } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { ADMIN_KEY_ID } from "../../contracts/keys.ts";
import { NOTHING_READ, type ReadRoutes, readRoutes, UnknownBase } from "../../contracts/read-routes.ts";
import type { Report } from "../../contracts/reports.ts";
import { NO_ROUTES, type RefusedRoute, type RouteSnapshot } from "../../contracts/routes.ts";
import { ApiPool, type ApiPoolDeps } from "./api-pool.ts";
import { Endpoints } from "./endpoints.ts";
import { followLines } from "./follow-lines.ts";

const RECONNECT_MS = 50;

type GatewayKey = RouteSnapshot["keys"][number];

export interface RouteTableOptions {
  file: string;
  internalSocket: string;
  pool: ApiPoolDeps;
  /** Called after a newer snapshot was applied. */
  onApplied?: () => void;
}

export class RouteTable implements Service {
  private readonly options: RouteTableOptions;
  private readonly pools = new Map<string, ApiPool>();
  /** Of deleted APIs: their last requests still have deadlines and keys. */
  private readonly retired = new Set<ApiPool>();
  private keys = new Map<string, GatewayKey>();
  /** The APIs whose workers have capabilities, by the hashes of the capabilities. */
  private capabilities = new Map<string, string>();
  /** Replaced as a whole: a request sees one snapshot or the next, never half of each. */
  endpoints = new Endpoints(NO_ROUTES, () => undefined);
  private known: ReadRoutes = NOTHING_READ;
  /** What could not be read of the newest snapshot. */
  private refused: readonly RefusedRoute[] = [];
  /** Tells the controller which gateway has applied what. */
  private readonly id = newToken();
  /** How often this gateway found a controller: each gets everything again. */
  connections = 0;
  private isStopped = false;

  constructor(options: RouteTableOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.readFile();
    contain("the routes", () => this.follow());
  }

  async stop(): Promise<void> {
    this.isStopped = true;
  }

  /** Whether any snapshot has been seen. */
  get isReady(): boolean {
    return this.known !== NOTHING_READ;
  }

  /** The principal of a key, by the key's hash; undefined if the key opens nothing now. */
  principal(sha256: string): Principal | undefined {
    return principalOf(this.keys.get(sha256), wallMs());
  }

  /** Another object whenever the keys or the routes change. */
  get keysVersion(): object {
    return this.endpoints;
  }

  /** The API whose workers have this capability now, by its hash. */
  capabilityOwner(sha256: string): string | undefined {
    return this.capabilities.get(sha256);
  }

  /** The hash of the data directory's admin token; undefined before the first snapshot. */
  get adminTokenSha256(): string | undefined {
    return this.known.snapshot.keys.find(({ id }) => id === ADMIN_KEY_ID)?.sha256;
  }

  /** False if no request is left. */
  expire(nowMs: number): boolean {
    let isAny = false;
    for (const pool of this.pools.values()) isAny = expireIn(pool, nowMs) || isAny;
    for (const pool of this.retired) {
      if (expireIn(pool, nowMs)) isAny = true;
      else this.retired.delete(pool);
    }
    return isAny;
  }

  get underWay(): number {
    let sum = 0;
    for (const pool of [...this.pools.values(), ...this.retired]) sum += pool.underWay;
    return sum;
  }

  /** Closes the connections to all replicas, after their requests. The next snapshot has others. */
  leaveReplicas(): void {
    for (const pool of this.pools.values())
      contain(`the replicas of ${pool.route.name}`, () => pool.update({ ...pool.route, replicas: [] }));
  }

  /** The report that the controller gets once a second. */
  report(): Report {
    const apis = [...this.pools].map(([name, pool]) => {
      return { name, in_flight: pool.underWay, waiting: pool.waitingCount, tally: pool.tally.counts };
    });
    return { gateway: this.id, apis };
  }

  /**
   * Reads a snapshot or a change, and applies it if it is newer. Returns false for a change of another snapshot than the
   * one in use: only a whole snapshot helps then.
   */
  private read(text: string): boolean {
    try {
      const read = readRoutes(JSON.parse(text), this.known);
      if (read === this.known) return true;
      this.apply(read.snapshot);
      this.known = read;
      this.options.onApplied?.();
      this.refuse(Object.values(read.refused).flat());
      return true;
    } catch (error) {
      this.refuse([{ name: "the snapshot", detail: (error as Error).message }]);
      return !(error instanceof UnknownBase);
    }
  }

  /** Reports what could not be read: once on stderr, and to the controller with each confirmation. */
  private refuse(refused: readonly RefusedRoute[]): void {
    for (const { name, detail } of refused) {
      if (this.refused.some((item) => item.name === name && item.detail === detail)) continue;
      processLog().error(
        { event: "route_unreadable", api: name },
        `cannot read the route of ${name}; its last good route stays in use: ${detail}`,
      );
    }
    this.refused = refused;
  }

  /** Lists that did not change are the same objects as before. */
  private apply(snapshot: RouteSnapshot): void {
    const { snapshot: before } = this.known;
    if (snapshot.keys !== before.keys) this.keys = new Map(snapshot.keys.map((key) => [key.sha256, key]));
    if (snapshot.apis !== before.apis) this.applyRoutes(snapshot.apis);
    const isSame = (["keys", "has_keys", "apis", "splitters"] as const).every(
      (list) => snapshot[list] === before[list],
    );
    if (!isSame) this.endpoints = new Endpoints(snapshot, (name) => this.pools.get(name));
    this.capabilities = new Map(snapshot.capabilities.map(({ sha256, api }) => [sha256, api]));
  }

  private applyRoutes(apis: RouteSnapshot["apis"]): void {
    const realtime = apis.filter((api) => api.kind === "RealtimeAPI");
    for (const route of realtime) contain(`the route of ${route.name}`, () => this.applyRoute(route));
    const names = new Set(realtime.map(({ name }) => name));
    for (const [name, pool] of this.pools) {
      if (names.has(name)) continue;
      this.pools.delete(name);
      this.retired.add(pool);
      contain(`the end of ${name}`, () => pool.retire());
    }
  }

  private applyRoute(route: RouteSnapshot["apis"][number]): void {
    const pool = this.pools.get(route.name);
    if (pool === undefined) this.pools.set(route.name, new ApiPool(route, this.options.pool));
    else pool.update(route);
  }

  /** Tells the controller which snapshot is applied; it waits for that when a key is revoked. */
  private confirm(): void {
    const { epoch, version } = this.known.snapshot;
    const path = "/routes/applied";
    const request = httpRequest({ socketPath: this.options.internalSocket, method: "POST", path });
    // A controller that is gone waits for nothing.
    request.on("error", () => {});
    request.on("response", (answer) => answer.resume());
    request.end(JSON.stringify({ gateway: this.id, epoch, version, refused: this.refused }));
  }

  private readFile(): void {
    try {
      this.read(readFileSync(this.options.file, "utf8"));
    } catch (error) {
      // There is no file before the first deployment. After any other error, the controller will write the file again.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        processLog().error({ event: "routes_unreadable", err: error }, "the route snapshot cannot be read");
    }
  }

  private async follow(): Promise<void> {
    const { internalSocket: socketPath } = this.options;
    while (!this.isStopped) {
      await followLines(
        { socketPath, path: `/routes?gateway=${this.id}` },
        {
          onOpen: () => this.connections++,
          onLine: (line) => this.read(line),
          onRead: () => this.confirm(),
        },
      );
      await delay(RECONNECT_MS);
    }
  }
}

/** An error in one API's deadlines does not hold up those of others. */
function expireIn(pool: ApiPool, nowMs: number): boolean {
  try {
    return pool.expire(nowMs);
  } catch (error) {
    reportFault(error, `requests of API ${pool.route.name}`);
    return true;
  }
}
