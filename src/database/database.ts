/**
 * The port to the database. It is asynchronous even if the driver is not, because PostgreSQL's driver is. An `await`
 * inside a transaction never lets another statement in.
 */

/** Integers are numbers (over 2^53 throws), blobs are Uint8Array, booleans are 0 and 1. */
export type SqlValue = string | number | null | Uint8Array;
export type Row = Record<string, SqlValue>;

export interface Statements {
  /** All rows of a query. `?` stands for each parameter. */
  all<T = Row>(sql: string, params?: readonly SqlValue[]): Promise<T[]>;
  /** Runs a statement; resolves to the number of rows that it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>;
}

export interface Database extends Statements {
  /** Commits if `work` resolves, rolls back if it rejects. Transactions and single statements run one after another. */
  transaction<T>(work: (tx: Statements) => Promise<T>): Promise<T>;
  /**
   * The same database for work that waits for as long as it cannot be reached, until `signal` is aborted. Only a
   * database that is another program has this. Work of the other kind is refused after a while (`DatabaseUnavailable`).
   */
  patient?(signal: AbortSignal): Database;
  close(): Promise<void>;
}

/** A database that is another program was not reached for so long that the work was given up. */
export class DatabaseUnavailable extends Error {
  /** A change was to be committed, and nobody knows whether it was. So nothing may be undone because of this error. */
  readonly isOutcomeUnknown: boolean;

  constructor(why: string, isOutcomeUnknown: boolean, cause?: unknown) {
    super(`the database cannot be reached: ${why}`, { cause });
    this.name = "DatabaseUnavailable";
    this.isOutcomeUnknown = isOutcomeUnknown;
  }
}

/** The `DatabaseUnavailable` that `error` is, or that caused it. */
export function unavailabilityOf(error: unknown): DatabaseUnavailable | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof DatabaseUnavailable) return at;
  return undefined;
}

/** The first row, or undefined. */
export async function first<T>(
  db: Statements,
  sql: string,
  params: readonly SqlValue[] = [],
): Promise<T | undefined> {
  return (await db.all<T>(sql, params))[0];
}
