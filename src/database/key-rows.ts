/**
 * The rows of keys, and of sessions of browsers: hashes only. Revoked keys stay, because a server that never had a key is
 * open to all.
 */
import type { StoredKey } from "../contracts/keys.ts";
import type { Database, Statements } from "./database.ts";

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

/** Adds a key. No statement of this file can make a revoked key valid again. */
export async function addKey(db: Statements, key: StoredKey): Promise<void> {
  const { id, name, sha256, scope, api, created_time, rate, expires_time } = key;
  const ofRate = [rate?.requests ?? null, rate?.seconds ?? null];
  await db.run(
    `INSERT INTO keys (id, name, sha256, scope, api, created_time, rate_requests, rate_seconds, expires_time)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [id, name, sha256, scope, api, created_time, ...ofRate, expires_time],
  );
}

/**
 * Adds the key's successor, and ends the key at `end` at the latest. False if the key is revoked: then nothing changes,
 * even if the revocation came while this waited for it.
 */
export function replaceKey(db: Database, id: string, end: string, successor: StoredKey): Promise<boolean> {
  return db.transaction(async (tx) => {
    const changed = await tx.run(
      `UPDATE keys SET expires_time = CASE WHEN expires_time < ? THEN expires_time ELSE ? END
       WHERE id = ? AND revoked_time IS NULL`,
      [end, end, id],
    );
    if (changed === 0) return false;
    await addKey(tx, successor);
    return true;
  });
}

/** Revokes the key; it keeps the time of its first revocation. */
export async function revokeKey(db: Statements, id: string, time: string): Promise<void> {
  await db.run("UPDATE keys SET revoked_time = ? WHERE id = ? AND revoked_time IS NULL", [time, id]);
}

/** Saves when keys were last used. */
export async function saveKeyUse(db: Statements, ids: readonly string[], time: string): Promise<void> {
  const places = ids.map(() => "?").join(", ");
  await db.run(`UPDATE keys SET last_used_time = ? WHERE id IN (${places})`, [time, ...ids]);
}

/** A session of a browser. */
interface SessionRow {
  sha256: string;
  key_id: string;
  key_sha256: string;
  created_time: string;
  expires_time: string;
}

/** The sessions, oldest first. */
export function allSessions(db: Statements): Promise<SessionRow[]> {
  return db.all("SELECT * FROM sessions ORDER BY created_time");
}

export async function addSession(db: Statements, session: SessionRow): Promise<void> {
  const { sha256, key_id, key_sha256, created_time, expires_time } = session;
  await db.run(
    "INSERT INTO sessions (sha256, key_id, key_sha256, created_time, expires_time) VALUES (?, ?, ?, ?, ?)",
    [sha256, key_id, key_sha256, created_time, expires_time],
  );
}

export async function removeSessions(db: Statements, hashes: readonly string[]): Promise<void> {
  const places = hashes.map(() => "?").join(", ");
  await db.run(`DELETE FROM sessions WHERE sha256 IN (${places})`, hashes);
}
