/** The routes that follow from a deployed version and its replicas. Pure. */
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../contracts/limits/predictions.ts";
import type { AddressRoute, ApiRoute, SplitterRoute } from "../contracts/routes.ts";
import { endpointOf } from "./config/endpoints.ts";
import type { AnyVersion, ApiVersion, SplitterVersion } from "./records/api-rows.ts";
import { replicaConcurrency } from "./replicas/scaling-rules.ts";
import { timeoutMsOf } from "./replicas/start-worker.ts";
import type { ServingReplica } from "./serving/api-replicas.ts";

/**
 * `networking.auth` decides (docs/contract/access.md#keys-close-apis). Without it, the API needs a key if any key
 * exists.
 */
export function needsKey(version: AnyVersion, isAnyKey: boolean): boolean {
  const auth = version.config.networking?.auth;
  return auth === "key" || (auth === undefined && isAnyKey);
}

function toAddress(version: AnyVersion, isAnyKey: boolean): AddressRoute {
  const { config } = version;
  return {
    name: config.name,
    endpoint: endpointOf(config),
    is_public: config.networking?.api_gateway !== "none",
    cors_origins: config.networking?.cors_origins ?? null,
    needs_key: needsKey(version, isAnyKey),
  };
}

export function toSplitterRoute(version: SplitterVersion, isAnyKey: boolean): SplitterRoute {
  return { ...toAddress(version, isAnyKey), apis: version.config.apis };
}

/** `status`: the API's. `isAnyKey`: the server has a key. */
export function toRoute(
  version: ApiVersion,
  { replicas, wanted }: { replicas: readonly ServingReplica[]; wanted: number },
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
    pass_credentials: version.config.predictor.pass_credentials ?? false,
    wants: [...new Set(replicas.flatMap(({ wants }) => wants))],
    replicas: replicas.map(({ identity, address }) => ({
      worker_id: identity.worker_id,
      socket: identity.socket,
      token: identity.token,
      pid: identity.pid,
      process_start: identity.process_start,
      note: identity.note,
      ...(address === undefined ? {} : { address }),
    })),
  };
}

/** How many requests a worker can use at once. Batches are formed from the requests that wait at the worker. */
function parallelOf(version: ApiVersion, isAsync: boolean): number {
  const { threads_per_process: threads, server_side_batching: batching } = version.config.predictor;
  if (batching !== undefined) return batching.max_batch_size * (threads + 1);
  if (!isAsync) return threads;
  return Math.ceil(replicaConcurrency(version.config) / version.config.predictor.processes_per_replica);
}
