/**
 * Opens the PostgreSQL database of a data directory, as open-database.ts opens the file of SQLite. Refuses one that is
 * in use, is not this directory's, or is of a newer release; then nothing is changed.
 */
import { CannotStart } from "../../contracts/cannot-start.ts";
import {
  DATABASE_TAKEN_WAIT_MS,
  POSTGRES_MIGRATION_MS,
  POSTGRES_SLOW_STATEMENT_MS,
  POSTGRES_STANDBY,
  POSTGRES_STATEMENT_MS,
} from "../../contracts/limits/database.ts";
import { shownDatabase } from "../../contracts/secrets.ts";
import type { Statements } from "../database.ts";
import { migrate, type OnMoved } from "../migrations.ts";
import { ConnectionLost, inWords, isSetUpWrong } from "./faults.ts";
import type { LeaseOwner } from "./lease.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Link, type OnReach } from "./link.ts";
import { Ownership, Taken, takenMeanwhile } from "./ownership.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { mismatchOf } from "./read-postgres.ts";
import { Session, type StatementLimits } from "./session.ts";
import { Standby, type StandbyOptions } from "./standby.ts";

/** Earlier ones lack no statement that is used, but no test runs on them. */
const LEAST_VERSION = 130_000;
const USUAL: StatementLimits = { serverMs: POSTGRES_SLOW_STATEMENT_MS, clientMs: POSTGRES_STATEMENT_MS };
const MIGRATING: StatementLimits = { serverMs: POSTGRES_MIGRATION_MS, clientMs: 2 * POSTGRES_MIGRATION_MS };

export interface PostgresOptions {
  /** It may have a password, so no message has it. */
  url: string;
  onReach?: OnReach;
  onMoved?: OnMoved;
  /** Shorter limits, for tests. */
  limits?: StatementLimits;
  /** The data directory is a cache of a state in an object store. */
  hasState?: boolean;
  /** Gives up if it cannot be reached at once: for commands. A server waits. */
  isImpatient?: boolean;
  /** Another owner has taken the database. It is out of reach from then on. */
  onTaken?: (error: Error) => void;
  /** The server that takes the database, and keeps a lease; undefined for commands. */
  owner?: LeaseOwner;
  /** Waits for as long as another server has the database; undefined: for a while only. */
  standby?: Omit<StandbyOptions, "own">;
}

/** Reads a database before it is taken. Throws if it is not the right one: its owner must notice nothing of that. */
type Check = (session: Statements) => Promise<void>;

/** Connects and takes the database. Its tables are as they were found. Throws `CannotStart` if a person must act. */
export async function connectPostgres(
  options: PostgresOptions,
  check: Check = async () => {},
): Promise<PostgresDatabase> {
  const { url, onReach, onTaken = () => {}, isImpatient = false, limits = { ...USUAL }, owner } = options;
  const ownership = new Ownership(owner);
  const standby = owner && options.standby && new Standby({ ...options.standby, own: owner });
  const untilMs = performance.now() + DATABASE_TAKEN_WAIT_MS;
  const isLate = () => standby === undefined && performance.now() > untilMs;
  let isFirst = true;
  let keeper: LeaseKeeper | undefined;
  const link = new Link({
    open: async () => checked(await Session.open(url, limits), isFirst ? check : undefined),
    take: async (session) => {
      if (isFirst && standby !== undefined) {
        await standby.wait(session);
        // The server that had it may have made its tables since the first look.
        await check(session);
      }
      const tenure = await ownership.take(session);
      isFirst = false;
      return tenure;
    },
    isFinal: (error) => isSetUpWrong(error) || (error instanceof Taken ? isLate() : isImpatient),
    onReach: onReach ?? (() => {}),
    onTaken: (error) => {
      keeper?.end();
      onTaken(error);
    },
  });
  try {
    await link.start();
    if (owner !== undefined) keeper = keeperOf(url, ownership, link);
    return PostgresDatabase.over(link, ownership, keeper);
  } catch (error) {
    await link.close();
    throw refusalOf(url, error);
  }
}

/** Renews the lease of a server, until the database is closed. */
function keeperOf(url: string, { writer }: Ownership, link: Link): LeaseKeeper {
  const keeper = new LeaseKeeper({ url, writer, onTaken: () => link.giveUp(takenMeanwhile()) });
  keeper.start();
  return keeper;
}

function refusalOf(url: string, error: unknown): unknown {
  if (error instanceof CannotStart) return error;
  const database = `the database ${shownDatabase(url)}`;
  if (error instanceof Taken)
    return new CannotStart(
      "database_in_use",
      `${database} is in use by another Quern: stop that one, or give this one a database of its own`,
    );
  return new CannotStart(
    "database_unusable",
    `${database} cannot be used: ${inWords(error)}; correct --database (or QUERN_DATABASE), or create the database and make its user the owner`,
    error,
  );
}

/** A standby takes no changes. Another encoding cannot keep every text. */
async function checked(session: Session, check: Check | undefined): Promise<Session> {
  try {
    const [found] = await session.all<{ version: number; encoding: string; read_only: string }>(
      "SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS read_only",
    );
    const { version, encoding, read_only } = found!;
    if (version < LEAST_VERSION)
      throw new CannotStart("database_unusable", "the database's PostgreSQL is older than 13: upgrade it");
    if (encoding !== "UTF8")
      throw new CannotStart(
        "database_unusable",
        `the database's encoding is ${encoding}: create one with ENCODING 'UTF8'`,
      );
    if (read_only === "on") throw new ConnectionLost(new Error("the server is read-only: a standby"));
    await check?.(session);
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
}

/** Opens the database of a data directory, and brings it to this release's schema. */
export async function openOwnPostgres(dataDir: string, options: PostgresOptions): Promise<PostgresDatabase> {
  // A server that waits must notice soon that its connection hangs.
  const limits = { ...(options.standby === undefined ? MIGRATING : POSTGRES_STANDBY) };
  const limit = async (now: StatementLimits) => {
    Object.assign(limits, now);
    await db.run(`SET statement_timeout = ${now.serverMs}`);
  };
  const shown = shownDatabase(options.url);
  const db = await connectPostgres({ ...options, limits }, (session) =>
    assertBelongs(session, dataDir, shown, options.hasState),
  );
  try {
    await limit(MIGRATING);
    await migrate(db.patient(new AbortController().signal), options.onMoved);
    await limit(options.limits ?? USUAL);
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

async function assertBelongs(
  db: Statements,
  dataDir: string,
  shown: string,
  hasState: boolean | undefined,
): Promise<void> {
  const found = await mismatchOf(db, dataDir, hasState);
  if (found === undefined) return;
  const message = `the database ${shown} ${found.what}. Nothing was changed. ${found.cure}`;
  throw new CannotStart("database_missing", message);
}
