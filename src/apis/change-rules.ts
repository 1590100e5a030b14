/** The conditions under which a deployed API may be changed. Each throws `wrong_state`, with the cure. Pure. */
import { ServiceError } from "../contracts/errors.ts";
import { isManaged } from "./managed-name.ts";
import { type AnyVersion, isSplitter } from "./records/api-rows.ts";

/** An API of an application is deployed and deleted with the application only. */
export function assertOwn(name: string, what: "deleted" | "exported" | "rolled back"): void {
  if (!isManaged(name)) return;
  const [application] = name.split(".");
  const message = `${name} cannot be ${what} alone: it belongs to the application ${application}; deploy that, or delete it (\`quern delete -a ${application}\`)`;
  throw new ServiceError("wrong_state", message);
}

/** No splitter sends requests to the API. */
export function assertNotSplitTo(name: string, deployed: readonly AnyVersion[]): void {
  const users = deployed
    .filter(isSplitter)
    .filter(({ config }) => config.apis.some((api) => api.name === name))
    .map((version) => version.name);
  if (users.length === 0) return;
  const message = `${name} cannot be deleted: it is used by the TrafficSplitter ${users.join(", ")}; delete that first, or take ${name} out of it`;
  throw new ServiceError("wrong_state", message);
}

/** The API has replicas of its own. */
export function assertHasReplicas({ name, config }: AnyVersion): void {
  if (config.kind === "RealtimeAPI") return;
  const instead =
    config.kind === "TrafficSplitter"
      ? `refresh the APIs that it sends to: ${config.apis.map((api) => `\`quern refresh ${api.name}\``).join(", ")}`
      : "each job starts its own workers";
  const message = `${name} is a ${config.kind}: it has no replicas to refresh; ${instead}`;
  throw new ServiceError("wrong_state", message);
}
