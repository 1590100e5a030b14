/**
 * Opens the database of a data directory. Refuses one that cannot be the right one: missing, empty or new beside data
 * that it should know, or damaged. Then nothing is changed: a new database would know no job, API or key, and unknown
 * data would be removed.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename } from "node:path";
import { Worker } from "node:worker_threads";
import { CannotStart } from "../contracts/cannot-start.ts";
import { databaseFile, databaseInUseFile } from "../contracts/data-layout.ts";
import { QUICK_CHECK_WAIT_BYTES } from "../contracts/limits/database.ts";
import { dataBeside } from "./data-directory.ts";
import type { Database } from "./database.ts";
import { migrateKeeping } from "./migrate-keeping.ts";
import { type OnMoved, schemaVersion } from "./migrations.ts";
import { type OnLocked, openSqliteDatabase } from "./sqlite.ts";
import { isDamaged } from "./sqlite-drivers.ts";

const PRIVATE = 0o600;
const OTHERS = 0o077;
const HEADER = "SQLite format 3\0";

/** Opens the database, and brings it to this release's schema. Throws `CannotStart` with file, finding and cure. */
export async function openOwnDatabase(
  dataDir: string,
  onLocked?: OnLocked,
  onMoved?: OnMoved,
): Promise<Database> {
  assertFits(dataDir);
  keepPrivate(databaseFile(dataDir));
  let db: Database | undefined;
  try {
    db = openSqliteDatabase(databaseFile(dataDir), onLocked);
    if ((await schemaVersion(db)) === 0 && dataBeside(dataDir) !== undefined)
      throw new CannotStart("database_missing", refusal(dataDir, "has no tables"));
    await migrateKeeping(db, dataDir, onMoved);
    return db;
  } catch (error) {
    await db?.close();
    if (!isDamaged(error)) throw error;
    throw damaged(dataDir, (error as Error).message);
  }
}

/** SQLite would let everybody read it. New files beside it get its mode. */
function keepPrivate(file: string): void {
  closeSync(openSync(file, "a", PRIVATE));
  for (const each of [file, `${file}-wal`, `${file}-shm`]) {
    const mode = statSync(each, { throwIfNoEntry: false })?.mode ?? PRIVATE;
    if ((mode & OTHERS) !== 0) makePrivate(each);
  }
}

/** Only its owner may. Somebody else who may write it keeps it as it is. */
function makePrivate(file: string): void {
  try {
    chmodSync(file, PRIVATE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}

/** Throws `CannotStart` if the file cannot be the database of this directory. Opens no database. */
export function assertFits(dataDir: string): void {
  const fault = findFault(dataDir);
  if (fault !== undefined) throw new CannotStart("database_missing", fault);
}

/** The fault of the file, given the data beside it, in words. Undefined if it may be opened. */
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

function refusal(dataDir: string, what: string): string {
  return (
    `the database ${databaseFile(dataDir)} ${what}, but ${dataBeside(dataDir)} is there, and a new database would not match it. ` +
    "Nothing was changed. Restore the database (from a backup, with its -wal file if it has one), or give the --database that it was used with; " +
    "to start without it, give another --data-dir, or move this directory away first"
  );
}

function damaged(dataDir: string, what: string): CannotStart {
  const file = databaseFile(dataDir);
  return new CannotStart(
    "database_damaged",
    `the database ${file} is damaged: ${what}. Nothing was changed. Restore a backup of it, or save what can be read: ` +
      `\`sqlite3 ${file} .recover | sqlite3 recovered.db\`, then put recovered.db in its place and remove ${basename(file)}-wal`,
  );
}

/** The marker of a database in use. */
export interface InUse {
  /** The marker already existed: the last server did not stop cleanly. */
  wasUnclean: boolean;
  clear: () => void;
}

export function markInUse(dataDir: string): InUse {
  const file = databaseInUseFile(dataDir);
  const wasUnclean = existsSync(file) && headOf(databaseFile(dataDir)) !== undefined;
  if (!wasUnclean) writeFileSync(file, "", { mode: 0o600 });
  return { wasUnclean, clear: () => rmSync(file, { force: true }) };
}

/**
 * Checks the database after an unclean stop, in a separate thread. Resolves if it is fine, and throws `CannotStart` if
 * not. A database over QUICK_CHECK_WAIT_BYTES is checked during the start, and `onDamage` gets the error.
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

/** The problems that `PRAGMA quick_check` finds; empty if there are none. */
function quickCheck(file: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL("./quick-check-thread.js", import.meta.url), { workerData: file });
    thread.once("message", resolve).once("error", reject);
    thread.once("exit", () => reject(new Error(`the check of ${file} ended without a result`)));
    thread.unref();
  });
}
