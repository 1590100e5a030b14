/**
 * The route snapshot's one writer: to a file, from which a gateway starts when there is no controller, and to the
 * gateways that are connected. Versions rise, also over restarts.
 */
import { renameSync, writeFileSync } from "node:fs";
import { delay } from "../base/clock.ts";
import { ServiceError } from "../contracts/errors.ts";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../contracts/limits.ts";
import type { AddressRoute, ApiRoute, RouteSnapshot, SplitterRoute } from "../contracts/routes.ts";
import type { AnyVersion, ApiVersion, SplitterVersion } from "./api-store.ts";
import { endpointOf } from "./endpoints.ts";
import type { Replica } from "./replica.ts";
import { replicaConcurrency } from "./scaling-rules.ts";
import { timeoutMsOf } from "./start-worker.ts";

/** Snapshots of one epoch; the next epoch's are all above them. */
const VERSIONS_PER_EPOCH = 1_000_000;
/** A gateway that takes longer to confirm is stuck. */
const EVERYWHERE_MS = 5_000;
const APPLIED_LOOK_MS = 5;

/** A gateway that is connected: given each snapshot, and asked which it has applied. */
interface Subscriber {
  listener: (snapshot: RouteSnapshot) => void;
  appliedVersion: number;
}

export class RoutePublisher {
  private readonly file: string;
  private version: number;
  private current: RouteSnapshot;
  /** By the gateway's own id. */
  private readonly subscribers = new Map<string, Subscriber>();

  constructor(file: string, epoch: number) {
    this.file = file;
    this.version = epoch * VERSIONS_PER_EPOCH;
    this.current = { version: this.version, apis: [], splitters: [], keys: [] };
  }

  get snapshot(): RouteSnapshot {
    return this.current;
  }

  /** Calls back with each later snapshot; returns how to stop that. */
  subscribe(gateway: string, listener: (snapshot: RouteSnapshot) => void): () => void {
    const subscriber = { listener, appliedVersion: 0 };
    this.subscribers.set(gateway, subscriber);
    return () => {
      if (this.subscribers.get(gateway) === subscriber) this.subscribers.delete(gateway);
    };
  }

  /** A gateway says that it acts by this version now. */
  applied(gateway: string, version: number): void {
    const subscriber = this.subscribers.get(gateway);
    if (subscriber !== undefined) subscriber.appliedVersion = Math.max(subscriber.appliedVersion, version);
  }

  publish(routes: Omit<RouteSnapshot, "version">): void {
    this.current = { version: ++this.version, ...routes };
    const temporary = `${this.file}.new`;
    writeFileSync(temporary, JSON.stringify(this.current), { mode: 0o600 });
    renameSync(temporary, this.file);
    for (const { listener } of this.subscribers.values()) listener(this.current);
  }

  /** Resolves when every connected gateway acts by the newest snapshot. Throws `server_unavailable` after a while. */
  async everywhere(): Promise<void> {
    const { version } = this.current;
    const deadline = performance.now() + EVERYWHERE_MS;
    while ([...this.subscribers.values()].some(({ appliedVersion }) => appliedVersion < version)) {
      if (performance.now() > deadline) {
        const message = "a gateway has not confirmed the change yet; it is recorded and will reach it";
        throw new ServiceError("server_unavailable", message, { retryAfterS: 1 });
      }
      await delay(APPLIED_LOOK_MS);
    }
  }
}

/** Decision 8: `networking.auth` decides; where it says nothing, whether there is any key. */
export function needsKey(version: AnyVersion, isAnyKey: boolean): boolean {
  const auth = version.config.networking?.auth;
  return auth === "key" || (auth === undefined && isAnyKey);
}

/** Any page may read predictions where nothing is said: the contract's gateway has CORS enabled. */
const ANY_ORIGIN = ["*"];

function toAddress(version: AnyVersion, isAnyKey: boolean): AddressRoute {
  const { config } = version;
  return {
    name: config.name,
    endpoint: endpointOf(config),
    is_public: config.networking?.api_gateway !== "none",
    cors_origins: config.networking?.cors_origins ?? ANY_ORIGIN,
    needs_key: needsKey(version, isAnyKey),
  };
}

export function toSplitterRoute(version: SplitterVersion, isAnyKey: boolean): SplitterRoute {
  return { ...toAddress(version, isAnyKey), apis: version.config.apis };
}

export function toRoute(
  version: ApiVersion,
  { replicas, wanted }: { replicas: readonly Replica[]; wanted: number },
  status: string,
  isAnyKey: boolean,
): ApiRoute {
  const { kind, autoscaling } = version.config;
  const isAsync = replicas.some((replica) => replica.isAsync);
  return {
    ...toAddress(version, isAnyKey),
    kind,
    api_id: version.api_id,
    status,
    timeout_ms: timeoutMsOf(version) ?? PREDICTION_TIMEOUT_DEFAULT_MS,
    capacity: replicaConcurrency(version.config) * Math.max(1, wanted),
    parallel: parallelOf(version, isAsync),
    is_blocking: !isAsync && version.config.predictor.threads_per_process === 1,
    can_sleep: autoscaling.min_replicas === 0,
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

/** How many requests a worker has use for at once: batches are formed of those that wait there. */
function parallelOf(version: ApiVersion, isAsync: boolean): number {
  const { threads_per_process: threads, server_side_batching: batching } = version.config.predictor;
  if (batching !== undefined) return batching.max_batch_size * (threads + 1);
  if (!isAsync) return threads;
  return Math.ceil(replicaConcurrency(version.config) / version.config.predictor.processes_per_replica);
}
