/** What `quern doctor` says about the database of a data directory. Changes nothing. */
import { existsSync } from "node:fs";
import { databaseFile } from "./contracts/data-layout.ts";
import { shownDatabase } from "./contracts/secrets.ts";
import { findFault } from "./database/open-database.ts";
import type { Found } from "./database/postgres/lease.ts";
import { findLease } from "./database/postgres/lease-rows.ts";
import { mismatchOf, readPostgres } from "./database/postgres/read-postgres.ts";

export interface DatabaseFound {
  detail: string;
  /** Missing if all is well. */
  cure?: string;
}

/** `url`: the PostgreSQL of the data directory; undefined for SQLite. `state`: the prefix of `--state`, if it has one. */
export async function checkDatabase(
  dataDir: string,
  url: string | undefined,
  state: string | undefined,
): Promise<DatabaseFound> {
  if (url !== undefined) return checkPostgres(dataDir, url, state !== undefined);
  const file = databaseFile(dataDir);
  const fault = findFault(dataDir);
  if (fault === undefined) return { detail: existsSync(file) ? file : "none yet" };
  const [detail, ...cure] = fault.split(". ");
  return { detail: detail!, cure: cure.join(". ") };
}

/** Which of several servers has the database. */
function ownerWords({ lease, isLocked }: Found): string {
  return isLocked && lease !== undefined ? `, used by the server on ${lease.host} since ${lease.taken}` : "";
}

async function checkPostgres(dataDir: string, url: string, hasState: boolean): Promise<DatabaseFound> {
  const shown = shownDatabase(url);
  try {
    return await readPostgres(url, async (db) => {
      const [{ version } = { version: "" }] = await db.all<{ version: string }>(
        "SELECT current_setting('server_version') AS version",
      );
      const mismatch = await mismatchOf(db, dataDir, hasState);
      if (mismatch === undefined)
        return { detail: `${shown}, PostgreSQL ${version}${ownerWords(await findLease(db))}` };
      return { detail: `${shown} ${mismatch.what}`, cure: mismatch.cure };
    });
  } catch (error) {
    const { message, code } = error as { message?: string; code?: string };
    return {
      detail: `${shown} cannot be reached: ${message || code}`,
      cure: "start PostgreSQL, or correct QUERN_DATABASE",
    };
  }
}
