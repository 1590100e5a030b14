/**
 * Migrates the database of an older release, and keeps it as it was before, in `quern.db.<schema version>.bak`: one
 * generation. With it in the place of `quern.db`, the older release starts again (docs/contract/operations.md#migration).
 */
import { chmodSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { sync } from "../base/files/sync.ts";
import { databaseFile, formerDatabaseFile, migratingFile } from "../contracts/data-layout.ts";
import type { Database } from "./database.ts";
import { migrate, newerData, type OnMoved, schemaVersion } from "./migrations.ts";
import { SCHEMA_STEPS } from "./schema-steps.ts";

const KEPT = /^quern\.db\.(\d+)\.bak$/;

export async function migrateKeeping(db: Database, dataDir: string, onMoved?: OnMoved): Promise<void> {
  const version = await schemaVersion(db);
  if (version > SCHEMA_STEPS.length) throw newerData(version, wayBack(dataDir));
  if (version === 0 || version === SCHEMA_STEPS.length) return migrate(db, onMoved);
  const mark = migratingFile(dataDir);
  // With the mark, an interrupted migration goes on. The database from before it is kept already.
  if (!existsSync(mark)) await keep(db, dataDir, version);
  writeFileSync(mark, "", { mode: 0o600 });
  await migrate(db, onMoved);
  rmSync(mark);
}

async function keep(db: Database, dataDir: string, version: number): Promise<void> {
  const kept = formerDatabaseFile(dataDir, version);
  const unfinished = `${kept}.new`;
  rmSync(unfinished, { force: true });
  try {
    await db.run("VACUUM INTO ?", [unfinished]);
    chmodSync(unfinished, 0o600);
    await sync(unfinished);
    renameSync(unfinished, kept);
  } catch (error) {
    // If the disk is full, the space is needed until the next attempt.
    rmSync(unfinished, { force: true });
    throw error;
  }
  await sync(dataDir);
  for (const name of readdirSync(dataDir))
    if (KEPT.test(name) && name !== basename(kept)) rmSync(join(dataDir, name));
}

/** In words: what the database was before. Empty if this release does not know it either. */
function wayBack(dataDir: string): string {
  const isKnown = (name: string) => Number(KEPT.exec(name)?.[1] ?? Infinity) <= SCHEMA_STEPS.length;
  const kept = readdirSync(dataDir).find(isKnown);
  if (kept === undefined) return "";
  return `. Or go back to what it was before: remove quern.db-wal and quern.db-shm, and \`mv ${join(dataDir, kept)} ${databaseFile(dataDir)}\`; what came later is lost then`;
}
