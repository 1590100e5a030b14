/** The rows of keys: hashes only. */
import type { StoredKey } from "../contracts/keys.ts";
import type { Statements } from "./database.ts";

export function allKeys(db: Statements): Promise<StoredKey[]> {
  return db.all<StoredKey>("SELECT * FROM keys ORDER BY created_time");
}

export async function insertKey(db: Statements, key: StoredKey): Promise<void> {
  const { id, sha256, scope, api, created_time } = key;
  await db.run("INSERT INTO keys (id, sha256, scope, api, created_time) VALUES (?, ?, ?, ?, ?)", [
    id,
    sha256,
    scope,
    api,
    created_time,
  ]);
}

/** False when there was none. */
export async function removeKey(db: Statements, id: string): Promise<boolean> {
  return (await db.run("DELETE FROM keys WHERE id = ?", [id])) === 1;
}
