/** Finds former versions of an API: to roll back to one, or to export one. */
import { ServiceError } from "../contracts/errors.ts";
import type { Database } from "../database/database.ts";
import { type AnyVersion, findVersion, versionHistory } from "./records/api-rows.ts";

/** The version before the current one, or the one with this id. Throws `wrong_state` if there is none. */
export async function formerVersion(
  db: Database,
  { name, api_id: current }: AnyVersion,
  wanted: string | undefined,
): Promise<AnyVersion> {
  const others = (await idsOf(db, name)).filter((id) => id !== current);
  const id = wanted === undefined ? others[0] : others.find((other) => other === wanted);
  const version = id === undefined ? undefined : await findVersion(db, name, id);
  if (version !== undefined) return version;
  const choice =
    others.length === 0 ? "no other version was deployed" : `other versions: ${others.join(", ")}`;
  const what =
    wanted === undefined ? "there is no version before it" : `${wanted} is not an earlier version of it`;
  throw new ServiceError("wrong_state", `${name} is at ${current}, but ${what}; ${choice}`);
}

/** The current version, or the one with this id. Throws `wrong_state` if there is none. */
export async function currentOrFormer(
  db: Database,
  current: AnyVersion,
  wanted: string | undefined,
): Promise<AnyVersion> {
  const { name } = current;
  const version = wanted === undefined ? current : await findVersion(db, name, wanted);
  if (version !== undefined) return version;
  const ids = await idsOf(db, name);
  throw new ServiceError("wrong_state", `${name} has no version ${wanted}; it has ${ids.join(", ")}`);
}

/** The ids of all versions, newest first. */
async function idsOf(db: Database, name: string): Promise<string[]> {
  return (await versionHistory(db, name)).map(({ api_id }) => api_id);
}
