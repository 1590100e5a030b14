/** The addresses of APIs (`networking.endpoint`): finds an API's address, and conflicts between two addresses. Pure. */
import type { ApiConfig } from "../../contracts/config/apis.ts";

/** The path of an API: the configured one, or its name. */
export function endpointOf({ name, networking }: Pick<ApiConfig, "name" | "networking">): string {
  return networking?.endpoint ?? `/${name}`;
}

/**
 * Finds another API whose address is equal, above or below this one's. Paths below an address belong to a batch API's
 * jobs.
 */
export function conflictOf<Other extends Pick<ApiConfig, "name" | "networking">>(
  api: Pick<ApiConfig, "name" | "networking">,
  others: readonly Other[],
): Other | undefined {
  const path = `${endpointOf(api)}/`;
  return others.find((other) => {
    if (other.name === api.name) return false;
    const otherPath = `${endpointOf(other)}/`;
    return path.startsWith(otherPath) || otherPath.startsWith(path);
  });
}
