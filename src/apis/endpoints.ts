/** The addresses of APIs (`networking.endpoint`): where each is, and that no two are in each other's way, purely. */
import type { ApiConfig } from "../contracts/apis.ts";

/** The path of an API: its own, or its name. */
export function endpointOf({ name, networking }: Pick<ApiConfig, "name" | "networking">): string {
  return networking?.endpoint ?? `/${name}`;
}

/** The other API whose address is the same, or before or behind this one's: paths below an address are a batch API's jobs. */
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
