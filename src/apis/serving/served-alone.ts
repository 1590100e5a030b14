/** Which version of an API gets all its requests. Pure. */
import type { ServedApi } from "./api-replicas.ts";

/**
 * The newest version's id, once it serves and no worker of another one is left. Versions that differ in nothing that
 * workers have are the same here.
 */
export function servedAlone(group: ServedApi | undefined): string | undefined {
  if (group === undefined || group.upToDate === 0) return undefined;
  const { predictor_id: id } = group.version;
  const left = group.workers.filter(({ state }) => state !== "gone");
  return left.every(({ predictor_id }) => predictor_id === id) ? id : undefined;
}
