/**
 * The database port over one connection. Statements and transactions run one after another, so an `await` inside a
 * transaction lets no other statement in. The drivers' differences are below this.
 */
import { SLICE_MS } from "../contracts/limits/event-loop.ts";
import type { Database, SqlValue, Statements } from "./database.ts";

export interface Connection extends Statements {
  /** Statements without parameters or results. */
  exec(sql: string): Promise<void>;
  close(): Promise<void>;
}

export class SerialDatabase implements Database {
  private tail: Promise<unknown> = Promise.resolve();
  /**
   * The time worked since others last had the event loop. Drivers work synchronously, and a hundred statements in a row
   * take long.
   */
  private workedMs = 0;
  private readonly connection: Connection;
  private readonly begin: string;

  constructor(connection: Connection, begin: string) {
    this.connection = connection;
    this.begin = begin;
  }

  all<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return this.enqueue(() => this.connection.all<T>(sql, params));
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    return this.enqueue(() => this.connection.run(sql, params));
  }

  transaction<T>(work: (tx: Statements) => Promise<T>): Promise<T> {
    return this.enqueue(async () => {
      await this.connection.exec(this.begin);
      try {
        const result = await work(this.connection);
        await this.connection.exec("COMMIT");
        return result;
      } catch (error) {
        // If the disk was full, the transaction is already rolled back.
        await this.connection.exec("ROLLBACK").catch(() => {});
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    await this.enqueue(() => this.connection.close());
  }

  private enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.tail.then(() =>
      this.workedMs < SLICE_MS ? this.timed(work) : this.timedLater(work),
    );
    this.tail = result.catch(() => {});
    return result;
  }

  private async timed<T>(work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    try {
      return await work();
    } finally {
      this.workedMs += performance.now() - startMs;
    }
  }

  private async timedLater<T>(work: () => Promise<T>): Promise<T> {
    await new Promise((resolve) => setImmediate(resolve));
    this.workedMs = 0;
    return this.timed(work);
  }
}
