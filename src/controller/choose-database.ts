/**
 * Opens the database of the controller: the file of SQLite in the data directory, or a PostgreSQL database
 * (`--database`). Checks the file first, if the last server did not stop cleanly.
 */
import { type DiskWait, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Log } from "../base/log.ts";
import { type ActiveServer, activeServerWords } from "../contracts/messages.ts";
import { shownDatabase } from "../contracts/secrets.ts";
import type { Database } from "../database/database.ts";
import type { OnMoved } from "../database/migrations.ts";
import { assertFits, checkAfterUncleanStop, markInUse, openOwnDatabase } from "../database/open-database.ts";
import type { LeaseOwner } from "../database/postgres/lease.ts";
import type { OnReach } from "../database/postgres/link.ts";
import { openOwnPostgres } from "../database/postgres/open-postgres.ts";
import type { StandbyOptions } from "../database/postgres/standby.ts";
import type { OnLocked } from "../database/sqlite.ts";

export interface ChosenDatabase {
  db: Database;
  /** Why the database does not serve now, in words; undefined if it does. */
  fault: () => string | undefined;
  /**
   * Resolves once this server has the database for certain. Rejects if another one has it, or if `signal` is aborted
   * while the database cannot be reached.
   */
  confirmOwner: (signal: AbortSignal) => Promise<void>;
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
  /** This server, for those that wait for the database. */
  owner: LeaseOwner;
  /** Another server has the database. */
  onStandby: (active: ActiveServer) => void;
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
    // Its gateways refuse requests from now on, and not only when the next controller has found the new owner.
    if (hasState) options.onStandby({ host: "", place: "", since: "" });
    // As if the parent had asked: workers stop too. The next start says what a person must do.
    process.kill(process.pid, "SIGTERM");
  };
  const onReach = tellOfReach(log, shownDatabase(database));
  // Without a state, another server would not have the files of this database.
  const standby = hasState ? waiting(options) : undefined;
  const postgres = { url: database, hasState, owner: options.owner, standby, onMoved, onReach, onTaken };
  const db = await whenDiskHasSpace(() => openOwnPostgres(dataDir, postgres), diskWait);
  return {
    db,
    fault: () => db.fault,
    confirmOwner: (signal) => db.confirmOwner(signal),
    close: () => db.close(),
  };
}

/** What a server does that waits for its database. */
function waiting({ log, onStandby }: ChooseOptions): Omit<StandbyOptions, "own"> {
  return {
    onStandby: (lease) => {
      const active = { host: lease?.host ?? "", place: lease?.place ?? "", since: lease?.taken ?? "" };
      const { host, since } = active;
      log.info(
        { event: "server_standby", host, since },
        `${activeServerWords(active)} has the database; this one waits`,
      );
      onStandby(active);
    },
    onTakeover: (lease, why) => {
      const former = activeServerWords({ host: lease?.host ?? "", place: "", since: "" });
      const what = why === "free" ? "does not have the database any more" : "has been silent for too long";
      log.warn({ event: "server_takes_over", host: lease?.host }, `${former} ${what}; this one takes over`);
    },
  };
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
  return { db, fault: () => undefined, confirmOwner: async () => {}, close };
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
