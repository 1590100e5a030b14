/** The state of a deployed API, as responses show it. Pure. */
import type { ApiView } from "../contracts/http/answers.ts";
import { statusOf } from "./api-status.ts";
import { endpointOf } from "./config/endpoints.ts";
import { type AnyVersion, exactSpec, type UnreadableApi } from "./records/api-rows.ts";
import type { ReplicaGroup } from "./replicas/replica-group.ts";

/** `endpoint` is a path; responses have the whole address. */
export type ApiState = Omit<ApiView, "path" | "metrics" | "running_jobs" | "latest_job" | "paused_time">;

const NO_REPLICAS = { up_to_date_replicas: 0, requested_replicas: 0, replicas: [] };

/** `group`: the replicas of a real-time API. It has none for a moment after a deployment. */
export function stateOf(version: AnyVersion, group: ReplicaGroup | undefined): ApiState {
  const { name, api_id, deployed_time: last_updated, config } = version;
  const { kind } = config;
  const known = { name, kind, api_id, endpoint: endpointOf(config), last_updated, spec: exactSpec(version) };
  if (kind !== "RealtimeAPI") return { ...known, status: "live", ...NO_REPLICAS };
  if (group === undefined) return { ...known, status: "updating", ...NO_REPLICAS };
  const { status, message } = statusOf(group);
  return {
    ...known,
    status,
    ...(message === undefined ? {} : { message }),
    up_to_date_replicas: group.upToDate,
    requested_replicas: group.wanted,
    requested_because: group.wantedBecause,
    replicas: replicasOf(group),
  };
}

function replicasOf({ workers, version }: ReplicaGroup): ApiState["replicas"] {
  return workers.map(({ identity, state, predictor_id }) => ({
    worker_id: identity.worker_id,
    pid: identity.pid,
    state,
    is_up_to_date: predictor_id === version.predictor_id,
  }));
}

/** The state of an API whose row cannot be read. */
export function stateOfUnreadable({ name, kind, api_id, deployed_time, why }: UnreadableApi): ApiState {
  const known = { name, kind, api_id, endpoint: `/${name}`, last_updated: deployed_time };
  return { ...known, spec: {}, status: "error", message: why, ...NO_REPLICAS };
}
