/** The lease of the server that has a PostgreSQL database: one row, and who has the lock (ownership.ts). */
import type { Statements } from "../database.ts";
import type { Found, Lease, LeaseOwner } from "./lease.ts";
import type { Session } from "./session.ts";

/** Any number that no other program uses in Quern's database: the letters QUERN. */
export const LOCK = 0x515545524e;
const TABLE = `CREATE TABLE IF NOT EXISTS quern_lease (
  writer TEXT PRIMARY KEY, directory TEXT NOT NULL, host TEXT NOT NULL, place TEXT NOT NULL,
  taken TIMESTAMPTZ NOT NULL, renewed TIMESTAMPTZ)`;
/** An older release that has taken the database since has left the lease as it was, but not the row of its writer. */
const READ = `SELECT writer, directory, host, place,
    to_char(taken AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS taken, renewed::text AS renewed,
    (extract(epoch FROM clock_timestamp() - renewed) * 1000)::float8 AS age_ms
  FROM quern_lease JOIN quern_writer USING (writer)`;
/** PostgreSQL shows the two halves of the lock's number. */
const LOCKED = `FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND classid = ${Math.floor(LOCK / 2 ** 32)} AND objid = ${LOCK % 2 ** 32}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Changes nothing. */
export async function findLease(db: Statements): Promise<Found> {
  const [state] = await db.all<{ is_locked: boolean; has_leases: boolean }>(
    `SELECT EXISTS (SELECT 1 ${LOCKED}) AS is_locked, to_regclass('quern_lease') IS NOT NULL AS has_leases`,
  );
  const { is_locked, has_leases } = state!;
  return { isLocked: is_locked, lease: has_leases ? (await db.all<Lease>(READ))[0] : undefined };
}

/** Ends the session that has the lock. Its open transaction is rolled back. */
export async function endLocked(session: Session): Promise<void> {
  await session.all(`SELECT pg_terminate_backend(pid) ${LOCKED}`);
}

/** The lease of a new owner takes the place of any other. Without an `owner` there is none, as for a command. */
export async function putLease(
  session: Session,
  writer: string,
  owner: LeaseOwner | undefined,
): Promise<void> {
  await session.exec(TABLE);
  await session.run("DELETE FROM quern_lease");
  if (owner === undefined) return;
  await session.run("INSERT INTO quern_lease VALUES (?, ?, ?, ?, clock_timestamp(), clock_timestamp())", [
    writer,
    owner.directory,
    owner.host,
    owner.place,
  ]);
}

/** False if another owner has the database. */
export async function renewLease(session: Session, writer: string): Promise<boolean> {
  const sql = "UPDATE quern_lease SET renewed = clock_timestamp() WHERE writer = ?";
  return (await session.run(sql, [writer])) === 1;
}

/** A server that waits need not wait any longer. */
export async function giveUpLease(session: Session, writer: string): Promise<void> {
  await session.run("UPDATE quern_lease SET renewed = NULL WHERE writer = ?", [writer]);
}
