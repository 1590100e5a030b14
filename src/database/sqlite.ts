/** The database port on SQLite, with every pragma set explicitly. */
import type { Database, SqlValue } from "./database.ts";
import { SerialDatabase } from "./serial-database.ts";
import { openSqlite } from "./sqlite-drivers.ts";

/** FULL survives a power cut; with group commit it costs nothing visible (docs/decisions/0003). */
const PRAGMAS = [
  "journal_mode = WAL",
  "synchronous = FULL",
  "foreign_keys = ON",
  "busy_timeout = 5000",
  "temp_store = MEMORY",
  "cache_size = -8000",
  "wal_autocheckpoint = 1000",
];

export function openSqliteDatabase(file: string): Database {
  const driver = openSqlite(file);
  for (const pragma of PRAGMAS) driver.exec(`PRAGMA ${pragma}`);
  const connection = {
    all: async <T>(sql: string, params: readonly SqlValue[] = []) => driver.all(sql, params) as T[],
    run: async (sql: string, params: readonly SqlValue[] = []) => driver.run(sql, params),
    exec: async (sql: string) => driver.exec(sql),
    close: async () => driver.close(),
  };
  return new SerialDatabase(connection, "BEGIN IMMEDIATE");
}
