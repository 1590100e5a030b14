/**
 * Opens the database of a data directory, and refuses one that cannot be what it was: missing, empty or new beside data that it should know, or
 * damaged. Nothing is changed then: a new database would know no job, no API and no key, and what it does not know would be removed.
 */
import { closeSync, openSync, readdirSync, readSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { CannotStart } from "../contracts/cannot-start.ts";
import { QUICK_CHECK_WAIT_BYTES } from "../contracts/limits.ts";
import type { Database } from "./database.ts";
import { INSTANCE_FILE } from "./instance.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import { type OnLocked, openSqliteDatabase } from "./sqlite.ts";
import { isDamaged } from "./sqlite-drivers.ts";

const DATABASE = "quern.db";
const HEADER = "SQLite format 3\0";
/** Directories whose content only the database can tell from waste. */
const KNOWN_BY_DATABASE = ["jobs", "projects", "applications"];
/** There while a server uses the database: found at a start, the one before did not stop cleanly. */
const IN_USE = "quern.db.in-use";

export function databaseFile(dataDir: string): string {
  return join(dataDir, DATABASE);
}

/** Opened, and of this release's schema. Throws `CannotStart` with file, finding and cure. */
export async function openOwnDatabase(dataDir: string, onLocked?: OnLocked): Promise<Database> {
  assertFits(dataDir);
  let db: Database | undefined;
  try {
    db = openSqliteDatabase(databaseFile(dataDir), onLocked);
    if ((await schemaVersion(db)) === 0 && dataBeside(dataDir) !== undefined)
      throw new CannotStart("database_missing", refusal(dataDir, "has no tables"));
    await migrate(db);
    return db;
  } catch (error) {
    await db?.close();
    if (!isDamaged(error)) throw error;
    throw damaged(dataDir, (error as Error).message);
  }
}

/** Throws `CannotStart` where the file cannot be the one of this directory; looks only, and opens nothing. */
export function assertFits(dataDir: string): void {
  const fault = findFault(dataDir);
  if (fault !== undefined) throw new CannotStart("database_missing", fault);
}

/** In words, what is wrong with the file beside what is there; undefined where it may be opened. */
export function findFault(dataDir: string): string | undefined {
  const head = headOf(databaseFile(dataDir));
  if (head === HEADER || dataBeside(dataDir) === undefined) return undefined;
  if (head === undefined) return refusal(dataDir, "is missing");
  return refusal(dataDir, head === "" ? "is empty" : "is not a database");
}

function headOf(file: string): string | undefined {
  try {
    const fd = openSync(file, "r");
    try {
      const buffer = Buffer.alloc(HEADER.length);
      return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** The first thing that a database must have been beside. */
function dataBeside(dataDir: string): string | undefined {
  for (const name of KNOWN_BY_DATABASE) {
    const path = join(dataDir, name);
    if (entriesOf(path).length > 0) return path;
  }
  return entriesOf(dataDir).includes(INSTANCE_FILE) ? join(dataDir, INSTANCE_FILE) : undefined;
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function refusal(dataDir: string, what: string): string {
  return (
    `the database ${databaseFile(dataDir)} ${what}, but ${dataBeside(dataDir)} is there: a new database would not know it. ` +
    "Nothing was changed. Put the database back (from a backup, with its -wal file if it has one); " +
    "to start without it, give another --data-dir, or move this directory away first"
  );
}

function damaged(dataDir: string, what: string): CannotStart {
  const file = databaseFile(dataDir);
  return new CannotStart(
    "database_damaged",
    `the database ${file} is damaged: ${what}. Nothing was changed. Put a backup of it back, or save what can be read: ` +
      `\`sqlite3 ${file} .recover | sqlite3 recovered.db\`, then put recovered.db in its place and remove ${DATABASE}-wal`,
  );
}

/** The mark of a database in use. */
export interface InUse {
  /** It was there already: the last server did not stop cleanly. */
  wasUnclean: boolean;
  clear: () => void;
}

export function markInUse(dataDir: string): InUse {
  const file = join(dataDir, IN_USE);
  const wasUnclean = entriesOf(dataDir).includes(IN_USE) && headOf(databaseFile(dataDir)) !== undefined;
  if (!wasUnclean) writeFileSync(file, "", { mode: 0o600 });
  return { wasUnclean, clear: () => rmSync(file, { force: true }) };
}

/**
 * Checks the database after an unclean stop, in a thread of its own. Resolves when it is fine; one over QUICK_CHECK_WAIT_BYTES is checked
 * beside the start, and `onDamage` is told. Throws `CannotStart`.
 */
export async function checkAfterUncleanStop(
  dataDir: string,
  onDamage: (error: CannotStart) => void,
): Promise<void> {
  const file = databaseFile(dataDir);
  const { size } = statSync(file);
  const check = quickCheck(file).then((problems) => {
    if (problems.length > 0) throw damaged(dataDir, problems.join("; "));
  });
  if (size <= QUICK_CHECK_WAIT_BYTES) return check;
  check.catch((error: Error) => {
    if (error instanceof CannotStart) onDamage(error);
  });
}

/** What `PRAGMA quick_check` finds; nothing is fine. */
function quickCheck(file: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL("./quick-check-thread.js", import.meta.url), { workerData: file });
    thread.once("message", resolve).once("error", reject);
    thread.once("exit", () => reject(new Error(`the check of ${file} ended without a result`)));
    thread.unref();
  });
}
