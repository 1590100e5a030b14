/** The state of a deployed API, as responses show it. Pure. */
import type { ApiView } from "../contracts/http/answers.ts";
import { hideInText } from "../contracts/secrets.ts";
import { statusOf } from "./api-status.ts";
import type { ApiOutline } from "./records/api-outlines.ts";
import type { ServedApi } from "./serving/api-replicas.ts";

/** `endpoint` is a path; responses have the whole address. They also have the configuration, which may be long. */
export type ApiState = Omit<
  ApiView,
  "path" | "spec" | "metrics" | "running_jobs" | "latest_job" | "paused_time"
>;

const NO_REPLICAS = { up_to_date_replicas: 0, requested_replicas: 0, replicas: [] };

/**
 * `group`: the replicas of a real-time API. It has none for a moment after a deployment. `installing`: what there is to
 * say about the installation of its packages.
 */
export function stateOf(outline: ApiOutline, group: ServedApi | undefined, installing?: string): ApiState {
  if (outline.why !== undefined) return stateOfUnreadable({ ...outline, why: outline.why });
  const { name, kind, api_id, deployed_time: last_updated, endpoint } = outline;
  const known = { name, kind, api_id, endpoint, last_updated };
  if (kind !== "RealtimeAPI") {
    const message = installing === undefined ? {} : { message: installing };
    return { ...known, status: "live", ...message, ...NO_REPLICAS };
  }
  if (group === undefined) return { ...known, status: "updating", ...NO_REPLICAS };
  const { status, message = installing } = statusOf(group);
  return {
    ...known,
    status,
    // Installers print the addresses of their packages.
    ...(message === undefined ? {} : { message: hideInText(message) }),
    up_to_date_replicas: group.upToDate,
    requested_replicas: group.wanted,
    requested_because: group.wantedBecause,
    replicas: replicasOf(group),
  };
}

function replicasOf({ workers, version }: ServedApi): ApiState["replicas"] {
  return workers.map(({ identity, state, predictor_id }) => ({
    worker_id: identity.worker_id,
    pid: identity.pid,
    state,
    is_up_to_date: predictor_id === version.predictor_id,
  }));
}

/** The state of an API whose row cannot be read, or whose state cannot be computed. */
export function stateOfUnreadable({
  name,
  kind,
  api_id,
  deployed_time,
  why,
}: Omit<ApiOutline, "endpoint"> & { why: string }): ApiState {
  const known = { name, kind, api_id, endpoint: `/${name}`, last_updated: deployed_time };
  return { ...known, status: "error", message: why, ...NO_REPLICAS };
}
