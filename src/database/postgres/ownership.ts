/**
 * Who may write to a PostgreSQL database, and which of its commits has happened
 * (docs/decisions/0028-postgresql.md).
 *
 * - An advisory lock is held by the session of the one controller that owns the database.
 * - Each owner has a row in `quern_writer`. A commit writes its mark there, in its own transaction, and only under the
 *   generation of its connection. A new connection takes the next generation. From then on no commit of an earlier
 *   connection can succeed, so the mark that is in the row is the last one, for good.
 * - A server has a lease too, which it renews (lease-keeper.ts), so that another one can tell that it is gone.
 */
import { newToken } from "../../base/ids.ts";
import { CannotStart } from "../../contracts/cannot-start.ts";
import { ConnectionLost } from "./faults.ts";
import type { LeaseOwner } from "./lease.ts";
import { LOCK, putLease } from "./lease-rows.ts";
import type { Session } from "./session.ts";

const TABLE = `CREATE TABLE IF NOT EXISTS quern_writer (
  writer TEXT PRIMARY KEY, generation BIGINT NOT NULL, mark TEXT NOT NULL)`;

/** Another session has the lock. It may be the earlier one of the same owner. */
export class Taken extends Error {
  constructor() {
    super("another session of Quern holds it");
    this.name = "Taken";
  }
}

/** What a session may commit with. */
export interface Tenure {
  generation: number;
  /** The mark of the last commit that has happened; "" if none has. */
  mark: string;
}

export class Ownership {
  readonly writer = newToken();
  private readonly owner: LeaseOwner | undefined;
  private isKnown = false;
  /** The server's process of the last session, and when it began. */
  private backend: { pid: number; begun: string } | undefined;

  /** `owner`: the server that becomes the owner; undefined for a command, which has no lease. */
  constructor(owner?: LeaseOwner) {
    this.owner = owner;
  }

  /** Takes the database for a new session. Earlier sessions of this owner can commit nothing from then on. */
  async take(session: Session): Promise<Tenure> {
    await this.endFormerSession(session);
    const [lock] = await session.all<{ taken: boolean }>("SELECT pg_try_advisory_lock(?) AS taken", [LOCK]);
    if (!lock!.taken) {
      // It may be an earlier session of this owner. A former owner must not wait for the lock.
      if (this.isKnown && !(await this.isOwner(session))) throw takenMeanwhile();
      throw new Taken();
    }
    this.backend = (
      await session.all<{ pid: number; begun: string }>(
        "SELECT pid, backend_start::text AS begun FROM pg_stat_activity WHERE pid = pg_backend_pid()",
      )
    )[0];
    if (!this.isKnown) await this.enter(session);
    const [tenure] = await session.all<Tenure>(
      "UPDATE quern_writer SET generation = generation + 1 WHERE writer = ? RETURNING generation, mark",
      [this.writer],
    );
    if (tenure === undefined) throw takenMeanwhile();
    return tenure;
  }

  private async isOwner(session: Session): Promise<boolean> {
    return (await session.all("SELECT 1 FROM quern_writer WHERE writer = ?", [this.writer])).length > 0;
  }

  /** The session that was lost may still hold the lock, and rows, if only its connection broke. */
  private async endFormerSession(session: Session): Promise<void> {
    if (this.backend === undefined) return;
    const { pid, begun } = this.backend;
    await session.all(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND backend_start::text = ?",
      [pid, begun],
    );
  }

  /** The rows of former owners go, so that none of their commits can still succeed. */
  private async enter(session: Session): Promise<void> {
    await session.exec(TABLE);
    await session.run("DELETE FROM quern_writer");
    await session.run("INSERT INTO quern_writer VALUES (?, 0, '')", [this.writer]);
    await putLease(session, this.writer, this.owner);
    this.isKnown = true;
  }

  /** Commits, and marks the commit. Throws if an earlier or later session has the tenure: nothing was committed then. */
  async commit(session: Session, { generation }: Tenure, mark: string): Promise<void> {
    // One message, so it costs no round trip. A row that is missing divides by zero, and the COMMIT is not reached.
    const marked = `UPDATE quern_writer SET mark = '${mark}' WHERE writer = '${this.writer}' AND generation = ${generation}`;
    try {
      await session.exec(`WITH marked AS (${marked} RETURNING 1) SELECT 1 / count(*) FROM marked; COMMIT`);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "22012") throw error;
      throw new ConnectionLost(new Error("another session has taken over"));
    }
  }
}

export function takenMeanwhile(): CannotStart {
  return new CannotStart("database_in_use", "another Quern has taken the database meanwhile");
}
