/** Reads a PostgreSQL database without taking it, also while a server uses it. */
import { POSTGRES_SLOW_STATEMENT_MS, POSTGRES_STATEMENT_MS } from "../../contracts/limits/database.ts";
import { dataBeside } from "../data-directory.ts";
import type { Statements } from "../database.ts";
import { readInstance } from "../instance.ts";
import { schemaVersion } from "../migrations.ts";
import { recordedInstance } from "../owner-row.ts";
import { Session } from "./session.ts";

/** Throws if the database cannot be reached. */
export async function readPostgres<T>(url: string, read: (statements: Statements) => Promise<T>): Promise<T> {
  const limits = { serverMs: POSTGRES_SLOW_STATEMENT_MS, clientMs: POSTGRES_STATEMENT_MS };
  const session = await Session.open(url, limits);
  try {
    return await read(session);
  } finally {
    await session.leave();
  }
}

/**
 * What is wrong between a database and a data directory, and the cure; undefined if they belong together. A database of
 * another directory would make this one a copy, take the other's jobs from it, and miss their files
 * (docs/decisions/0016-instances.md). `hasState`: the directory is a cache of a state in an object store, which tells
 * whose it is. So an empty one belongs to any database that has a state.
 */
export async function mismatchOf(
  db: Statements,
  dataDir: string,
  hasState = false,
): Promise<{ what: string; cure: string } | undefined> {
  const version = await schemaVersion(db);
  const beside = dataBeside(dataDir);
  if (version === 0 && beside !== undefined)
    return {
      what: `has no tables, but ${beside} is there, and a new database would not match it`,
      cure: "Give the --database that this directory was used with (none, if it has a quern.db), restore a backup of it, or give another --data-dir",
    };
  // The steps before did not record it. Only a first start that was cut off can leave such a database.
  if (version < SCHEMA_WITH_INSTANCES) return undefined;
  const recorded = await recordedInstance(db);
  const own = readInstance(dataDir);
  if (["", own?.id, own?.formerId].includes(recorded)) return undefined;
  if (hasState && own === undefined && beside === undefined && (await hasRecordedState(db))) return undefined;
  return {
    what: `belongs to another data directory than ${dataDir}`,
    cure: hasState
      ? "Give an empty --data-dir if the database has a state (--state), or the directory that it was used with"
      : "Give that directory as --data-dir (or a restored backup of it), or give this one a database of its own",
  };
}

/** Whether a server with `--state` has used the database. */
async function hasRecordedState(db: Statements): Promise<boolean> {
  const column =
    "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'owner' AND column_name = 'state_token'";
  if ((await db.all(column)).length === 0) return false;
  const sql = "SELECT instance_id FROM owner WHERE state_token <> '' OR state_next <> ''";
  return (await db.all(sql)).length > 0;
}

/** The first version of the schema that has `owner.instance_id`. */
const SCHEMA_WITH_INSTANCES = 8;
