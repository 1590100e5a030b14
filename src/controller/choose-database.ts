/**
 * Opens the database of the controller: the file of SQLite in the data directory, or a PostgreSQL database
 * (`--database`). Checks the file first, if the last server did not stop cleanly.
 */
import { type DiskWait, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Log } from "../base/log.ts";
import { shownDatabase } from "../contracts/secrets.ts";
import type { Database } from "../database/database.ts";
import type { OnMoved } from "../database/migrations.ts";
import { assertFits, checkAfterUncleanStop, markInUse, openOwnDatabase } from "../database/open-database.ts";
import type { OnReach } from "../database/postgres/link.ts";
import { openOwnPostgres } from "../database/postgres/open-postgres.ts";
import type { OnLocked } from "../database/sqlite.ts";

export interface ChosenDatabase {
  db: Database;
  /** Why the database does not serve now, in words; undefined if it does. */
  fault: () => string | undefined;
  close: () => Promise<void>;
}

interface ChooseOptions {
  dataDir: string;
  /** The address of a PostgreSQL database; undefined for SQLite. */
  database: string | undefined;
  /** The data directory is a cache of a state in an object store. */
  hasState: boolean;
  log: Log;
  diskWait: DiskWait;
}

export async function openChosenDatabase(options: ChooseOptions): Promise<ChosenDatabase> {
  const { dataDir, database, hasState, log, diskWait } = options;
  const onMoved: OnMoved = (rows) =>
    log.info(
      { event: "database_migrating", jobs: rows },
      `migrating the database of an older Quern: ${rows} jobs moved; the control plane starts after that`,
    );
  if (database === undefined) return openFile(options, onMoved);
  const onTaken = (error: Error) => {
    log.error({ event: "database_taken" }, `${error.message}; this controller stops`);
    // As if the parent had asked: workers stop too. The next start says what a person must do.
    process.kill(process.pid, "SIGTERM");
  };
  const onReach = tellOfReach(log, shownDatabase(database));
  const openIt = () => openOwnPostgres(dataDir, { url: database, hasState, onMoved, onReach, onTaken });
  const db = await whenDiskHasSpace(openIt, diskWait);
  return { db, fault: () => db.fault, close: () => db.close() };
}

async function openFile(
  { dataDir, log, diskWait }: ChooseOptions,
  onMoved: OnMoved,
): Promise<ChosenDatabase> {
  assertFits(dataDir);
  const inUse = await whenDiskHasSpace(async () => markInUse(dataDir), diskWait);
  if (inUse.wasUnclean)
    await checkAfterUncleanStop(dataDir, (error) =>
      log.error({ event: "database_damaged", err: error }, "the database is damaged"),
    );
  const db = await whenDiskHasSpace(() => openOwnDatabase(dataDir, tellOfLock(log), onMoved), diskWait);
  const close = async () => {
    await db.close();
    inUse.clear();
  };
  return { db, fault: () => undefined, close };
}

function tellOfLock(log: Log): OnLocked {
  return ({ isOver, waitedMs }) => {
    const seconds = Math.round(waitedMs / 1000);
    if (isOver)
      log.warn(
        { event: "database_unlocked" },
        `another process had locked the database for ${seconds} s; continuing`,
      );
    else
      log.warn(
        { event: "database_locked" },
        "another process has locked the database (a shell, a backup): jobs and changes wait for it",
      );
  };
}

function tellOfReach(log: Log, shown: string): OnReach {
  return ({ isReached, why, forMs }) => {
    if (isReached)
      log.warn(
        { event: "database_reached" },
        `the database ${shown} is reached again after ${Math.round(forMs / 1000)} s; continuing`,
      );
    else
      log.error(
        { event: "database_unreachable", why },
        `the database ${shown} cannot be reached: jobs and changes wait for it`,
      );
  };
}
