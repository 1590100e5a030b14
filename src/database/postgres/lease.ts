/**
 * When a server that waits may take a PostgreSQL database from the one that has it. Pure
 * (docs/decisions/0037-standby.md).
 */
import { DATABASE_LEASE_MS, DATABASE_LOCK_FREE_MS } from "../../contracts/limits/database.ts";

/** The server that has a database. */
export interface LeaseOwner {
  /** Identifies its data directory on its machine. Two servers never use one at once. */
  directory: string;
  /** The name of its machine, or of its pod. */
  host: string;
  /** Where it listens, and its data directory: for people. */
  place: string;
}

/** The row of the holder, as its reader found it. */
export interface Lease extends LeaseOwner {
  /** Changes with each owner. */
  writer: string;
  /** When it took the database, in the database's words. */
  taken: string;
  /** When it was last renewed, in the database's words; null if its holder has given it up. */
  renewed: string | null;
  /** Since then, by the clock of the database. */
  age_ms: number | null;
}

export interface Found {
  /** Undefined if no server with a lease has the database: a command, or an older release. */
  lease: Lease | undefined;
  /** Whether a session has the lock. */
  isLocked: boolean;
}

export interface Looking {
  /** The data directory of the server that waits. */
  directory: string;
  /** For how long this server has seen the same renewal, by its own clock; undefined at its first look. */
  sameForMs: number | undefined;
}

/** `end`: take it, and end the session that still has the lock. */
export type Verdict = "wait" | "take" | "end";

export function judgeLease({ lease, isLocked }: Found, { directory, sameForMs }: Looking): Verdict {
  if (lease === undefined) return isLocked ? "wait" : "take";
  // Whoever has the directory's lock knows that its former server is gone.
  if (lease.directory === directory) return isLocked ? "end" : "take";
  if (lease.renewed === null) return isLocked ? "wait" : "take";
  if (isLocked) return silenceMs(lease, sameForMs ?? 0) >= DATABASE_LEASE_MS ? "end" : "wait";
  // Its holder may have lost its connections for a moment, as in a restart of PostgreSQL.
  const silent = sameForMs === undefined ? (lease.age_ms ?? 0) : silenceMs(lease, sameForMs);
  return silent >= DATABASE_LOCK_FREE_MS ? "take" : "wait";
}

/** By both clocks, so that a database whose clock is set forward takes nothing from its holder. */
function silenceMs({ age_ms }: Lease, sameForMs: number): number {
  // It was set back.
  if (age_ms === null || age_ms < 0) return sameForMs;
  return Math.min(age_ms, sameForMs);
}
