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
  close(): Promise<void>;
}

/** The first row, or undefined. */
export async function first<T>(
  db: Statements,
  sql: string,
  params: readonly SqlValue[] = [],
): Promise<T | undefined> {
  return (await db.all<T>(sql, params))[0];
}
