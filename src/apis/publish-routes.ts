/**
 * The route snapshot's one writer: to a file, from which a gateway starts when there is no controller, and to the
 * gateways that are connected. Versions rise, also over restarts.
 */
import { renameSync, writeFileSync } from "node:fs";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../contracts/limits.ts";
import type { ApiRoute, RouteSnapshot } from "../contracts/routes.ts";
import type { ApiVersion } from "./api-store.ts";
import type { Replica } from "./replica.ts";
import { concurrencyOf, timeoutMsOf } from "./start-worker.ts";

/** Snapshots of one epoch; the next epoch's are all above them. */
const VERSIONS_PER_EPOCH = 1_000_000;

export class RoutePublisher {
  private readonly file: string;
  private version: number;
  private current: RouteSnapshot;
  private readonly listeners = new Set<(snapshot: RouteSnapshot) => void>();

  constructor(file: string, epoch: number) {
    this.file = file;
    this.version = epoch * VERSIONS_PER_EPOCH;
    this.current = { version: this.version, apis: [] };
  }

  get snapshot(): RouteSnapshot {
    return this.current;
  }

  /** Calls back with each later snapshot; returns how to stop that. */
  subscribe(listener: (snapshot: RouteSnapshot) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  publish(apis: ApiRoute[]): void {
    this.current = { version: ++this.version, apis };
    const temporary = `${this.file}.new`;
    writeFileSync(temporary, JSON.stringify(this.current), { mode: 0o600 });
    renameSync(temporary, this.file);
    for (const listener of this.listeners) listener(this.current);
  }
}

export function toRoute(version: ApiVersion, replicas: readonly Replica[], status: string): ApiRoute {
  const { kind, name, autoscaling } = version.config;
  return {
    name,
    kind,
    api_id: version.api_id,
    status,
    timeout_ms: timeoutMsOf(version) ?? PREDICTION_TIMEOUT_DEFAULT_MS,
    capacity: concurrencyOf(version) * autoscaling.min_replicas,
    expose_errors: version.config.predictor.expose_errors,
    wants: [...new Set(replicas.flatMap((replica) => replica.wants))],
    replicas: replicas.map(({ identity }) => ({
      worker_id: identity.worker_id,
      socket: identity.socket,
      token: identity.token,
      pid: identity.pid,
      process_start: identity.process_start,
      note: identity.note,
    })),
  };
}
