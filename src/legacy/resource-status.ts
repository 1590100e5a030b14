/** Computes the status of every resource, purely (docs/contract/applications.md#resource-statuses). */
import type { NodeKind, ResourceStatus, ServedApi } from "../contracts/config/applications.ts";
import type { ArtifactState } from "./artifacts.ts";
import { nodesOf, type ResourceGraph } from "./check/resource-graph.ts";
import { DATA_KINDS } from "./workloads.ts";

type ComputedKind = Exclude<NodeKind, "api">;

const RUNNING: Readonly<Record<ComputedKind, ResourceStatus>> = {
  raw_column: "ingesting",
  aggregate: "aggregating",
  transformed_column: "transforming",
  training_dataset: "generating",
  model: "training",
};

/**
 * Returns statuses by id. `served`: served APIs by name. `isWorking`: stages run, or are about to. `waiting`: the id of
 * the resource that waits for compute.
 */
export function statusesOf(
  graph: ResourceGraph,
  states: ReadonlyMap<string, ArtifactState>,
  { isWorking, waiting }: { isWorking: boolean; waiting: string | undefined },
  served: ReadonlyMap<string, ServedApi>,
): Map<string, ResourceStatus> {
  const statuses = new Map<string, ResourceStatus>();
  const dataStates = nodesOf(graph).flatMap(({ kind, id }) =>
    DATA_KINDS.includes(kind) ? [states.get(id)?.state] : [],
  );
  const hasFailed = dataStates.includes("failed");
  const wasTerminated = dataStates.includes("terminated");
  for (const node of nodesOf(graph)) {
    const parents = node.dependsOn.flatMap((id) => statuses.get(id) ?? []);
    if (node.kind === "api") statuses.set(node.id, apiStatus(parents[0]!, served.get(node.name)));
    else {
      const state = states.get(node.id)?.state;
      const own = node.id === waiting ? "compute unavailable" : ownStatus(node.kind, state);
      const isOfFailedData = DATA_KINDS.includes(node.kind) && (hasFailed || wasTerminated);
      statuses.set(node.id, own ?? unbegun(parents, isWorking, isOfFailedData));
    }
  }
  return statuses;
}

function ownStatus(
  kind: ComputedKind,
  state: ArtifactState["state"] | undefined,
): ResourceStatus | undefined {
  if (state === "succeeded") return "ready";
  if (state === "failed") return "error";
  if (state === "terminated") return "terminated";
  return state === "running" ? RUNNING[kind] : undefined;
}

/** The status of a resource that no stage has begun. */
function unbegun(
  parents: readonly ResourceStatus[],
  isWorking: boolean,
  isOfFailedData: boolean,
): ResourceStatus {
  if (isWorking) return "pending";
  if (isOfFailedData) return "skipped";
  return upstream(parents) ?? "pending";
}

function upstream(parents: readonly ResourceStatus[]): ResourceStatus | undefined {
  const has = (...statuses: ResourceStatus[]) => parents.some((parent) => statuses.includes(parent));
  if (has("error", "skipped", "upstream error")) return "upstream error";
  return has("terminated", "upstream termination") ? "upstream termination" : undefined;
}

function apiStatus(model: ResourceStatus, served: ServedApi | undefined): ResourceStatus {
  if (served === undefined) return upstream([model]) ?? "pending";
  if (!served.is_current) {
    if (model === "ready") return "updating";
    return upstream([model]) === undefined ? "update pending" : "update skipped";
  }
  if (served.status === "live") return "ready";
  if (served.status === "compute unavailable") return "compute unavailable";
  if (served.status !== "updating") return "error";
  return served.up_to_date_replicas > 0 ? "updating" : "pending";
}
