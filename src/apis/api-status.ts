/**
 * Computes the status of a real-time API (docs/contract/command-line.md#api-statuses): the first condition that holds.
 * Pure.
 */
import type { ApiStatus } from "../contracts/config/api-statuses.ts";
import type { ServedApi } from "./serving/api-replicas.ts";

type Counted = Pick<ServedApi, "upToDate" | "wanted" | "failure" | "failedForMemory" | "lack"> & {
  version: { config: { autoscaling: { min_replicas: number } } };
};

export function statusOf(group: Counted): { status: ApiStatus; message?: string } {
  const { upToDate, wanted, failure, lack } = group;
  const least = group.version.config.autoscaling.min_replicas;
  if (upToDate >= wanted) return { status: "live" };
  if (failure !== undefined && upToDate === 0)
    return { status: group.failedForMemory ? "error (out of memory)" : "error", message: failure };
  if (lack !== undefined) {
    const message = `${wanted - upToDate} of ${wanted} replicas wait for compute: ${lack}`;
    return { status: upToDate >= Math.max(1, least) ? "live" : "compute unavailable", message };
  }
  return { status: "updating" };
}
