/** The rows of keys: hashes only. Revoked keys stay, because a server that never had a key is open to all. */
import type { StoredKey } from "../contracts/keys.ts";
import type { Statements } from "./database.ts";

/** A key as it is stored, with its last use. */
export type UsedKey = StoredKey & { last_used_time: string | null };

interface KeyRow extends Omit<UsedKey, "rate"> {
  rate_requests: number | null;
  rate_seconds: number | null;
}

export async function allKeys(db: Statements): Promise<UsedKey[]> {
  const rows = await db.all<KeyRow>("SELECT * FROM keys ORDER BY created_time");
  return rows.map(({ rate_requests, rate_seconds, ...row }) => ({
    ...row,
    rate: rate_requests === null ? null : { requests: rate_requests, seconds: rate_seconds! },
  }));
}

/** Inserts the key, or replaces what can change: its expiry and its revocation. */
export async function saveKey(db: Statements, key: StoredKey): Promise<void> {
  const { id, name, sha256, scope, api, created_time, rate, expires_time, revoked_time } = key;
  await db.run(
    `INSERT INTO keys (id, name, sha256, scope, api, created_time, rate_requests, rate_seconds, expires_time, revoked_time)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET expires_time = excluded.expires_time, revoked_time = excluded.revoked_time`,
    [
      id,
      name,
      sha256,
      scope,
      api,
      created_time,
      rate?.requests ?? null,
      rate?.seconds ?? null,
      expires_time,
      revoked_time,
    ],
  );
}

/** Saves when keys were last used. */
export async function saveKeyUse(db: Statements, ids: readonly string[], time: string): Promise<void> {
  const places = ids.map(() => "?").join(", ");
  await db.run(`UPDATE keys SET last_used_time = ? WHERE id IN (${places})`, [time, ...ids]);
}
