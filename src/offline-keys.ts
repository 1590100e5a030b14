/**
 * Creates keys without a running server: the first key is needed before a server listens on more than loopback
 * (docs/contract/access.md#offline-keys).
 */
import { existsSync, mkdirSync } from "node:fs";
import { makeKey } from "./access/keys.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { databaseFile } from "./contracts/data-layout.ts";
import type { CreatedKey, NewKey } from "./contracts/keys.ts";
import { shownDatabase } from "./contracts/secrets.ts";
import { lockDataDirectory } from "./database/data-directory.ts";
import { addKey, allKeys } from "./database/key-rows.ts";
import { assertFits, openOwnDatabase } from "./database/open-database.ts";
import { openOwnPostgres } from "./database/postgres/open-postgres.ts";
import { readPostgres } from "./database/postgres/read-postgres.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";

/** PostgreSQL's code for a table that is not there. */
const NO_TABLE = "42P01";

/** Whether any key was created in this data directory. `database`: its PostgreSQL; undefined for SQLite. */
export async function hasAnyKey(dataDir: string, database: string | undefined): Promise<boolean> {
  if (database !== undefined) return hasAnyIn(database);
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

async function hasAnyIn(database: string): Promise<boolean> {
  try {
    return await readPostgres(database, async (db) => (await allKeys(db)).length > 0);
  } catch (error) {
    if ((error as { code?: unknown }).code === NO_TABLE) return false;
    if (error instanceof CannotStart) throw error;
    throw new Error(
      `the database ${shownDatabase(database)} cannot be read: ${(error as Error).message || (error as { code?: string }).code}`,
      { cause: error },
    );
  }
}

/** Creates a key in a data directory. `hasState`: the directory is a cache of an object store. Throws if a server uses it. */
export async function createKeyOffline(
  dataDir: string,
  asked: NewKey,
  database: string | undefined,
  hasState: boolean,
): Promise<CreatedKey> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const directory = await lockDataDirectory(dataDir, process.pid, 0, () => true);
  const db =
    database === undefined
      ? await openOwnDatabase(dataDir)
      : await openOwnPostgres(dataDir, { url: database, hasState, isImpatient: true });
  try {
    const { created, stored } = makeKey(asked);
    await addKey(db, stored);
    return created;
  } finally {
    await db.close();
    directory.release();
  }
}
