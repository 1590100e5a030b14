/**
 * The gateway's view of what is deployed: the newest snapshot, from the file at the start and from the controller's
 * stream while there is one. A lower version is never taken.
 */
import { readFileSync } from "node:fs";
import { get, request as httpRequest } from "node:http";
import { holderOf } from "../access/keys.ts";
import type { Holder } from "../access/permission.ts";
import { delay } from "../base/clock.ts";
import { newToken } from "../base/ids.ts";
import type { Service } from "../base/service.ts";
import type { Report } from "../contracts/reports.ts";
import { type RouteSnapshot, routeSnapshotSchema } from "../contracts/routes.ts";
import { ApiPool, type ApiPoolDeps } from "./api-pool.ts";
import { Endpoints } from "./endpoints.ts";

const RECONNECT_MS = 50;

type GatewayKey = RouteSnapshot["keys"][number];

export interface RouteTableOptions {
  file: string;
  internalSocket: string;
  pool: ApiPoolDeps;
}

export class RouteTable implements Service {
  private readonly options: RouteTableOptions;
  private readonly pools = new Map<string, ApiPool>();
  private keys = new Map<string, GatewayKey>();
  /** Replaced as a whole: a request sees one snapshot or the next, never half of each. */
  endpoints = new Endpoints({ version: -1, apis: [], splitters: [], keys: [] }, () => undefined);
  private version = -1;
  /** By this the controller knows which gateway has applied what. */
  private readonly id = newToken();
  private isStopped = false;

  constructor(options: RouteTableOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.readFile();
    void this.follow();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
  }

  /** Whether any snapshot has been seen. */
  get isReady(): boolean {
    return this.version >= 0;
  }

  /** What a key opens now, by its hash. */
  holder(sha256: string): Holder | undefined {
    return holderOf(this.keys.get(sha256), Date.now());
  }

  expire(nowMs: number): void {
    for (const pool of this.pools.values()) pool.expire(nowMs);
  }

  get underWay(): number {
    let sum = 0;
    for (const pool of this.pools.values()) sum += pool.underWay;
    return sum;
  }

  /** What the controller is told once a second. */
  report(): Report {
    const pools = [...this.pools];
    return {
      gateway: this.id,
      in_flight: Object.fromEntries(pools.map(([name, pool]) => [name, pool.underWay])),
      waiting: Object.fromEntries(pools.map(([name, pool]) => [name, pool.waitingCount])),
      tallies: Object.fromEntries(pools.map(([name, pool]) => [name, pool.tally.counts])),
    };
  }

  private apply(snapshot: RouteSnapshot): void {
    if (snapshot.version <= this.version) return;
    this.version = snapshot.version;
    this.keys = new Map(snapshot.keys.map((key) => [key.sha256, key]));
    const realtime = snapshot.apis.filter((api) => api.kind === "RealtimeAPI");
    for (const route of realtime) {
      const pool = this.pools.get(route.name);
      if (pool === undefined) this.pools.set(route.name, new ApiPool(route, this.options.pool));
      else pool.update(route);
    }
    for (const [name, pool] of this.pools) {
      if (realtime.some((route) => route.name === name)) continue;
      pool.retire();
      this.pools.delete(name);
    }
    this.endpoints = new Endpoints(snapshot, (name) => this.pools.get(name));
  }

  /** Tells the controller what we act by now; it waits for that when a key is revoked. */
  private confirm(): void {
    const path = `/routes/applied?gateway=${this.id}&version=${this.version}`;
    const request = httpRequest({ socketPath: this.options.internalSocket, method: "POST", path });
    // A controller that is gone waits for nothing.
    request.on("error", () => {});
    request.on("response", (answer) => answer.resume());
    request.end();
  }

  private readFile(): void {
    try {
      this.apply(routeSnapshotSchema.parse(JSON.parse(readFileSync(this.options.file, "utf8"))));
    } catch (error) {
      // Before the first deployment there is no file; anything else the controller will write anew.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        process.emitWarning(`the route snapshot cannot be read: ${(error as Error).message}`);
    }
  }

  private async follow(): Promise<void> {
    while (!this.isStopped) {
      await this.followOnce();
      await delay(RECONNECT_MS);
    }
  }

  /** Takes snapshots, one a line, until the controller goes away. */
  private followOnce(): Promise<void> {
    return new Promise((resolve) => {
      const request = get(
        { socketPath: this.options.internalSocket, path: `/routes?gateway=${this.id}` },
        (answer) => {
          let rest = "";
          answer.setEncoding("utf8");
          answer.on("data", (text: string) => {
            const lines = (rest + text).split("\n");
            rest = lines.pop()!;
            for (const line of lines) this.apply(routeSnapshotSchema.parse(JSON.parse(line)));
            if (lines.length > 0) this.confirm();
          });
          answer.on("close", resolve);
          answer.on("error", () => resolve());
        },
      );
      request.on("error", () => resolve());
      request.setTimeout(0);
    });
  }
}
