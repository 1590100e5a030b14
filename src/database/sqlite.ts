/** The database port on SQLite: one connection, statements and transactions in a queue, every pragma set explicitly. */
import type { Database, SqlValue, Statements } from "./database.ts";
import { openSqlite, type SqliteDriver } from "./sqlite-drivers.ts";

/** FULL survives a power cut; with group commit it costs nothing visible (docs/decisions/0003). */
const PRAGMAS = [
  "journal_mode = WAL",
  "synchronous = FULL",
  "foreign_keys = ON",
  "busy_timeout = 5000",
  "temp_store = MEMORY",
  "cache_size = -8000",
  "wal_autocheckpoint = 1000",
];

class SqliteDatabase implements Database {
  private tail: Promise<unknown> = Promise.resolve();
  private readonly driver: SqliteDriver;
  private readonly direct: Statements;

  constructor(driver: SqliteDriver) {
    this.driver = driver;
    this.direct = {
      all: async <T>(sql: string, params: readonly SqlValue[] = []) => driver.all(sql, params) as T[],
      run: async (sql, params = []) => driver.run(sql, params),
    };
  }

  all<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return this.enqueue(() => this.direct.all<T>(sql, params));
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    return this.enqueue(() => this.direct.run(sql, params));
  }

  transaction<T>(work: (tx: Statements) => Promise<T>): Promise<T> {
    return this.enqueue(async () => {
      this.driver.exec("BEGIN IMMEDIATE");
      try {
        const result = await work(this.direct);
        this.driver.exec("COMMIT");
        return result;
      } catch (error) {
        this.driver.exec("ROLLBACK");
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    await this.enqueue(async () => this.driver.close());
  }

  private enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.tail.then(work);
    this.tail = result.catch(() => {});
    return result;
  }
}

export function openSqliteDatabase(file: string): Database {
  const driver = openSqlite(file);
  for (const pragma of PRAGMAS) driver.exec(`PRAGMA ${pragma}`);
  return new SqliteDatabase(driver);
}
