/** An empty SQLite database in a directory of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

export interface TemporaryDatabase {
  db: Database;
  directory: string;
  /** Closes the database and removes its directory. */
  remove: () => Promise<void>;
}

export async function temporaryDatabase(): Promise<TemporaryDatabase> {
  const directory = mkdtempSync(join(tmpdir(), "quern-database-"));
  const db = openSqliteDatabase(join(directory, "quern.db"));
  await migrate(db);
  const remove = async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { db, directory, remove };
}
