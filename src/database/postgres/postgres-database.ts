/**
 * The database port on PostgreSQL. Work that a lost connection or the server has undone runs again, also a whole
 * transaction. A commit whose outcome is unknown is looked up, and never just repeated
 * (docs/decisions/0028-postgresql.md).
 */
import { setTimeout as pause } from "node:timers/promises";
import { newToken } from "../../base/ids.ts";
import { POSTGRES_AGAIN } from "../../contracts/limits/database.ts";
import { type Database, DatabaseUnavailable, type SqlValue, type Statements } from "../database.ts";
import { ConnectionLost, findCause, pauseMs, RolledBack } from "./faults.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Connected, Link } from "./link.ts";
import type { Ownership } from "./ownership.ts";
import { Patience } from "./patience.ts";

/** The connection broke during COMMIT. `outcome` tells whether it has happened, once there is another connection. */
class UnknownCommit extends Error {
  readonly outcome: Promise<boolean>;
  readonly result: unknown;

  constructor(cause: ConnectionLost, outcome: Promise<boolean>, result: unknown) {
    super(cause.message, { cause });
    this.outcome = outcome;
    this.result = result;
  }
}

/** What all views of one database share: the link, and the order of the work. */
interface Shared {
  link: Link;
  ownership: Ownership;
  /** The end of the work before. */
  tail: Promise<unknown>;
  /** Of a server. */
  lease: LeaseKeeper | undefined;
}

export class PostgresDatabase implements Database {
  private readonly shared: Shared;
  private readonly signal: AbortSignal | undefined;

  /** With a `signal`, work waits for an unreachable database until that is aborted. */
  constructor(shared: Shared, signal?: AbortSignal) {
    this.shared = shared;
    this.signal = signal;
  }

  static over(link: Link, ownership: Ownership, lease?: LeaseKeeper): PostgresDatabase {
    return new PostgresDatabase({ link, ownership, tail: Promise.resolve(), lease });
  }

  /** Resolves once this server has the database for certain. Rejects with `DatabaseUnavailable` if another one has it. */
  async confirmOwner(signal: AbortSignal): Promise<void> {
    await this.shared.lease?.confirm(signal);
  }

  patient(signal: AbortSignal): Database {
    return new PostgresDatabase(this.shared, signal);
  }

  get fault(): string | undefined {
    return this.shared.link.fault;
  }

  all<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return this.repeat(({ session }) => session.all<T>(sql, params), "read");
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    return this.transaction((tx) => tx.run(sql, params));
  }

  transaction<T>(work: (tx: Statements) => Promise<T>): Promise<T> {
    return this.repeat((connected) => this.attempt(connected, work), "write");
  }

  /** Work in hand is finished first, unless it cannot be. */
  async close(): Promise<void> {
    const { link, lease } = this.shared;
    const leave = async () => {
      await lease?.close();
      await link.close();
    };
    if (link.fault !== undefined) await leave();
    else await this.inTurn(leave);
  }

  /** Does `work` until it succeeds, fails by itself, or nobody waits any more. */
  private async repeat<T>(work: (connected: Connected) => Promise<T>, kind: "read" | "write"): Promise<T> {
    const { link } = this.shared;
    const patience = new Patience(this.signal, () => link.fault ?? "it is too busy");
    try {
      for (let tries = 0; ; tries++) {
        await patience.within(link.whenUp());
        const outcome = await this.tried(work, kind, patience);
        if ("result" in outcome) return outcome.result;
        if (patience.isOver) throw new DatabaseUnavailable(outcome.error.message, false, outcome.error);
        // A connection that was lost is tried again at once, but not one that is lost each time.
        if (tries > 0 || outcome.error instanceof RolledBack)
          await pause(pauseMs(tries, POSTGRES_AGAIN, Math.random()));
      }
    } finally {
      patience.done();
    }
  }

  /** One try, in its turn. Resolves to the error if the work may be tried again. */
  private async tried<T>(
    work: (connected: Connected) => Promise<T>,
    kind: "read" | "write",
    patience: Patience,
  ): Promise<{ result: T } | { error: Error }> {
    let hasBegun = false;
    const turn = this.inTurn(async () => {
      if (patience.isOver) throw new DatabaseUnavailable("it is too busy", false);
      const connected = this.shared.link.current;
      if (connected === undefined) throw new ConnectionLost(new Error("there is no connection"));
      hasBegun = kind === "write";
      return work(connected);
    });
    try {
      // A change that has begun is waited for: it may succeed. Its statements have limits of their own.
      return {
        result: await patience.within(turn).catch((error) => (hasBegun ? turn : Promise.reject(error))),
      };
    } catch (error) {
      if (error instanceof UnknownCommit) return this.resolved<T>(error, patience);
      const undone = findCause(error, ConnectionLost) ?? findCause(error, RolledBack);
      if (undone === undefined) throw error;
      return { error: undone };
    }
  }

  /** A commit that has happened is the result; one that has not may be tried again. */
  private async resolved<T>(
    { outcome, result, cause }: UnknownCommit,
    patience: Patience,
  ): Promise<{ result: T } | { error: Error }> {
    const late = patience.isOver ? new Patience(undefined, () => "") : patience;
    try {
      return (await late.within(outcome)) ? { result: result as T } : { error: cause as ConnectionLost };
    } catch {
      throw new DatabaseUnavailable(
        `${(cause as Error).message}. Whether the change was made is not known: look before you repeat it`,
        true,
        cause,
      );
    } finally {
      late.done();
    }
  }

  private async attempt<T>(connected: Connected, work: (tx: Statements) => Promise<T>): Promise<T> {
    const { session, tenure } = connected;
    const { link, ownership } = this.shared;
    let result: T;
    try {
      await session.exec("BEGIN");
      result = await work(session);
    } catch (error) {
      await rollBack(connected);
      throw error;
    }
    const mark = newToken();
    const outcome = link.outcomeOf(mark);
    try {
      await ownership.commit(session, tenure, mark);
      return result;
    } catch (error) {
      const lost = findCause(error, ConnectionLost);
      if (lost !== undefined && session.isLost) throw new UnknownCommit(lost, outcome, result);
      if (lost !== undefined) session.lose(lost);
      else await rollBack(connected);
      throw error;
    }
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.shared.tail.then(work);
    this.shared.tail = result.catch(() => {});
    return result;
  }
}

/** A session that cannot roll back is of no use. */
async function rollBack({ session }: Connected): Promise<void> {
  if (session.isLost) return;
  await session.exec("ROLLBACK").catch((error) => session.lose(error));
}
