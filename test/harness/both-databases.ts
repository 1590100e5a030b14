/** An empty, migrated database of each kind. */
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrations.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { isPostgresInstalled, startPostgres } from "./postgres.ts";
import { temporaryDatabase } from "./temporary-database.ts";

export interface EmptyDatabase {
  db: Database;
  remove: () => Promise<void>;
}

async function emptyPostgres(): Promise<EmptyDatabase> {
  const postgres = await startPostgres();
  const db = await connectPostgres({ url: postgres.url });
  await migrate(db);
  const remove = async () => {
    await db.close();
    postgres.stop();
  };
  return { db, remove };
}

/** For `describe.each`: the name, how one is opened, and whether this machine has it. */
export const BOTH_DATABASES = [
  ["SQLite", temporaryDatabase as () => Promise<EmptyDatabase>, true],
  ["PostgreSQL", emptyPostgres, isPostgresInstalled],
] as const;
