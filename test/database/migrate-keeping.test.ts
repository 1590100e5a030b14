/** The database of an older release is kept as it was, until the next migration. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { migrateKeeping } from "../../src/database/migrate-keeping.ts";
import { schemaVersion } from "../../src/database/migrations.ts";
import { openOwnDatabase } from "../../src/database/open-database.ts";
import { SCHEMA_STEPS } from "../../src/database/schema-steps.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

/** A release from before: its steps are plain statements. */
const OLD = 11;
let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-keeping-"));
  file = join(directory, "quern.db");
});
afterEach(() => rmSync(directory, { recursive: true }));

async function makeOld(): Promise<void> {
  const db = openSqliteDatabase(file);
  await db.run("CREATE TABLE schema_version (version INTEGER NOT NULL)");
  for (const step of SCHEMA_STEPS.slice(0, OLD) as (readonly string[])[])
    for (const statement of step) await db.run(statement);
  await db.run("INSERT INTO schema_version VALUES (?)", [OLD]);
  await db.run("UPDATE owner SET epoch = 41");
  await db.close();
}

const kept = () => readdirSync(directory).filter((name) => name.endsWith(".bak"));

async function read<T>(path: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = openSqliteDatabase(path);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

it("keeps one generation, which the older release can open", async () => {
  await makeOld();
  writeFileSync(join(directory, "quern.db.7.bak"), "of the migration before");
  await (await openOwnDatabase(directory)).close();
  expect(await read(file, schemaVersion)).toBe(SCHEMA_STEPS.length);
  expect(kept()).toEqual([`quern.db.${OLD}.bak`]);
  const copy = join(directory, kept()[0]!);
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  expect(await read(copy, schemaVersion)).toBe(OLD);
  expect(await read(copy, (db) => db.all("SELECT epoch FROM owner"))).toEqual([{ epoch: 41 }]);
  expect(existsSync(join(directory, "quern.db.migrating"))).toBe(false);
});

it("keeps nothing if there is nothing to migrate", async () => {
  await (await openOwnDatabase(directory)).close();
  await (await openOwnDatabase(directory)).close();
  expect(kept()).toEqual([]);
});

it("keeps what was there before the first attempt, if a migration is interrupted", async () => {
  await makeOld();
  await read(file, async (db) => {
    let left = 2;
    const killed: Database = {
      all: (sql, params) => db.all(sql, params),
      run: (sql, params) => db.run(sql, params),
      transaction: (work) => (left-- > 0 ? db.transaction(work) : Promise.reject(new Error("killed"))),
      close: () => db.close(),
    };
    await expect(migrateKeeping(killed, directory)).rejects.toThrow("killed");
    expect(await schemaVersion(db)).toBeGreaterThan(OLD);
  });
  await (await openOwnDatabase(directory)).close();
  expect(await read(join(directory, `quern.db.${OLD}.bak`), schemaVersion)).toBe(OLD);
  expect(kept()).toHaveLength(1);
});

it("names what was kept if a newer release has migrated the database", async () => {
  await makeOld();
  const db = await openOwnDatabase(directory);
  await db.run("UPDATE schema_version SET version = 999");
  await db.close();
  await expect(openOwnDatabase(directory)).rejects.toThrow(
    `start it with the newer Quern that wrote it. Or go back to what it was before: remove quern.db-wal and quern.db-shm, and \`mv ${directory}/quern.db.${OLD}.bak ${file}\``,
  );
});
