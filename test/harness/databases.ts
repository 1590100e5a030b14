/**
 * The database of a test's server: SQLite in its data directory, or, with QUERN_TEST_DATABASE=postgres, a database of
 * its own in the PostgreSQL of the run.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Database, SqlValue } from "../../src/database/database.ts";
import { readPostgres } from "../../src/database/postgres/read-postgres.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { psql } from "./postgres.ts";

/** For tests about SQLite's file itself: its damage, its locks, its copies, a full disk below it. */
export const isOnSqlite = process.env.QUERN_TEST_DATABASE !== "postgres";

/** The address of a new database; undefined on SQLite. */
export function newTestDatabase(): string | undefined {
  if (isOnSqlite) return undefined;
  const name = `test_${randomBytes(6).toString("hex")}`;
  const server = process.env.QUERN_TEST_POSTGRES!;
  psql(server, `CREATE DATABASE ${name}`);
  return server.replace(/[^/]*$/, name);
}

export function dropTestDatabase(url: string | undefined): void {
  if (url === undefined) return;
  psql(process.env.QUERN_TEST_POSTGRES!, `DROP DATABASE ${url.replace(/^.*\//, "")} WITH (FORCE)`);
}

/** The database of a server, also while it runs. */
export function openTestDatabase(dataDir: string, url: string | undefined): Database {
  if (url === undefined) return openSqliteDatabase(join(dataDir, "quern.db"));
  return {
    all: (sql: string, params?: readonly SqlValue[]) => readPostgres(url, (db) => db.all(sql, params)),
    run: (sql, params) => readPostgres(url, (db) => db.run(sql, params)),
    transaction: (work) => readPostgres(url, work),
    close: async () => {},
  } as Database;
}

/** The number of rows of each table that has some. */
export async function countRows(db: Database, tables: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of tables) {
    const [row] = await db.all<{ count: number }>(`SELECT count(*) AS count FROM ${table}`);
    if (row!.count > 0) counts[table] = row!.count;
  }
  return counts;
}

/** Changes the stored specifications of APIs by name, as an SQL pattern. */
export async function changeSpecs(
  db: Database,
  name: string,
  change: (spec: Record<string, unknown>) => void,
): Promise<void> {
  const rows = await db.all<{ name: string; api_id: string; spec_json: string }>(
    "SELECT name, api_id, spec_json FROM api_versions WHERE name LIKE ?",
    [name],
  );
  for (const row of rows) {
    const spec = JSON.parse(row.spec_json) as Record<string, unknown>;
    change(spec);
    const values = [JSON.stringify(spec), row.name, row.api_id];
    await db.run("UPDATE api_versions SET spec_json = ? WHERE name = ? AND api_id = ?", values);
  }
}
