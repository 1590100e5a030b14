/**
 * Creates keys without a running server: the first key is needed before a server listens on more than loopback
 * (docs/contract/access.md#offline-keys).
 */
import { existsSync, mkdirSync } from "node:fs";
import { makeKey } from "./access/keys.ts";
import { databaseFile } from "./contracts/data-layout.ts";
import type { CreatedKey, KeyScope } from "./contracts/keys.ts";
import { lockDataDirectory } from "./database/data-directory.ts";
import { allKeys, saveKey } from "./database/key-rows.ts";
import { assertFits, openOwnDatabase } from "./database/open-database.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";

/** Whether any key was created in this data directory. */
export async function hasAnyKey(dataDir: string): Promise<boolean> {
  const file = databaseFile(dataDir);
  assertFits(dataDir);
  if (!existsSync(file)) return false;
  const db = openSqliteDatabase(file);
  try {
    return (await allKeys(db)).length > 0;
  } catch {
    // A release without keys wrote the database. The controller will migrate it.
    return false;
  } finally {
    await db.close();
  }
}

/** Creates a key in a data directory. Throws if a server uses the directory. */
export async function createKeyOffline(
  dataDir: string,
  scope: KeyScope,
  api: string | null,
): Promise<CreatedKey> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const directory = await lockDataDirectory(dataDir, process.pid, 0, () => true);
  const db = await openOwnDatabase(dataDir);
  try {
    const { created, stored } = makeKey({ scope, api, rate: null, expiresInMs: null });
    await saveKey(db, stored);
    return created;
  } finally {
    await db.close();
    directory.release();
  }
}
