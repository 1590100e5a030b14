/**
 * The database port over one connection. Statements and transactions run one after another, so an `await` inside a
 * transaction lets no other statement in. The drivers' differences are below this.
 *
 * Changes that wait together are committed together: a commit waits for the disk, and a small job has ten. Each of them
 * fails alone: a transaction has a savepoint, and a statement undoes itself. Nobody hears of a change, or of what a query
 * saw of it, before it is durable.
 */
import { inBackground } from "../base/boundary.ts";
import { CHANGES_TOGETHER_MAX } from "../contracts/limits/database.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";
import type { Database, SqlValue, Statements } from "./database.ts";

export interface Connection extends Statements {
  /** Statements without parameters or results. */
  exec(sql: string): Promise<void>;
  close(): Promise<void>;
}

/** Alone, a statement is a transaction already. */
type Kind = "query" | "change" | "transaction";

interface Task {
  kind: Kind;
  work: () => Promise<unknown>;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** The first statement of changes that are committed together: it can be released only while their transaction lasts. */
const ALIVE = "SAVEPOINT alive";

/** Tells the caller of a task how it ended. */
type Tell = () => void;

export class SerialDatabase implements Database {
  private readonly connection: Connection;
  private readonly begin: string;
  private waiting: Task[] = [];
  private isAtWork = false;
  /**
   * The time worked since others last had the event loop. Drivers work synchronously, and a hundred statements in a row
   * take long.
   */
  private workedMs = 0;

  constructor(connection: Connection, begin: string) {
    this.connection = connection;
    this.begin = begin;
  }

  all<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return this.enqueue("query", () => this.connection.all<T>(sql, params));
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    return this.enqueue("change", () => this.connection.run(sql, params));
  }

  transaction<T>(work: (tx: Statements) => Promise<T>): Promise<T> {
    return this.enqueue("transaction", () => work(this.connection));
  }

  async close(): Promise<void> {
    await this.enqueue("query", () => this.connection.close());
  }

  private enqueue<T>(kind: Kind, work: () => Promise<T>): Promise<T> {
    const result = new Promise<T>((resolve, reject) => {
      this.waiting.push({ kind, work, resolve: resolve as Task["resolve"], reject });
    });
    if (!this.isAtWork) inBackground(this.workOff());
    return result;
  }

  /** Never rejects: each task has its own end. */
  private async workOff(): Promise<void> {
    this.isAtWork = true;
    // What its caller does first comes first.
    await undefined;
    while (this.waiting.length > 0) {
      const startMs = performance.now();
      const tasks = this.take();
      const tells = tasks.length > 1 ? await this.together(tasks) : [await this.alone(tasks[0]!)];
      for (const tell of tells) tell();
      this.workedMs += performance.now() - startMs;
      // After a commit too: what comes in this turn of the loop shares the next one.
      if (this.workedMs >= SLICE_MS || tasks[0]!.kind !== "query") await this.rest();
    }
    this.isAtWork = false;
  }

  private async rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.workedMs = 0;
  }

  /** A query, or a change, or changes with the queries between them. */
  private take(): Task[] {
    const first = this.waiting[0]!;
    if (first.kind === "query") return this.waiting.splice(0, 1);
    const next = this.waiting.slice(0, CHANGES_TOGETHER_MAX);
    return this.waiting.splice(0, next.findLastIndex(({ kind }) => kind !== "query") + 1);
  }

  private async alone({ kind, work, resolve, reject }: Task): Promise<Tell> {
    try {
      const value = await (kind === "transaction" ? this.committed(work) : work());
      return () => resolve(value);
    } catch (error) {
      return () => reject(error);
    }
  }

  /** They share a commit. Those for which the time was too short wait again. */
  private async together(tasks: readonly Task[]): Promise<Tell[]> {
    const endMs = performance.now() + SLICE_MS;
    const begun: Task[] = [];
    try {
      return await this.committed(async () => {
        const tells: Tell[] = [];
        await this.connection.run(ALIVE);
        for (const task of tasks) {
          if (begun.length > 0 && performance.now() >= endMs) break;
          begun.push(task);
          tells.push(await (task.kind === "transaction" ? this.inSavepoint(task) : this.inPlace(task)));
        }
        return tells;
      });
    } catch (error) {
      // None of them was committed. If none has begun, the first one fails alone.
      if (begun.length === 0) begun.push(tasks[0]!);
      return begun.map(
        ({ reject }) =>
          () =>
            reject(error),
      );
    } finally {
      this.waiting.unshift(...tasks.slice(begun.length));
    }
  }

  private async committed<T>(work: () => Promise<T>): Promise<T> {
    await this.connection.exec(this.begin);
    try {
      const result = await work();
      await this.connection.exec("COMMIT");
      return result;
    } catch (error) {
      // If the disk was full, the transaction is already rolled back.
      await this.connection.exec("ROLLBACK").catch(() => {});
      throw error;
    }
  }

  /** A statement that fails has changed nothing, unless the whole transaction is gone: then this throws. */
  private async inPlace({ work, resolve, reject }: Task): Promise<Tell> {
    try {
      const value = await work();
      return () => resolve(value);
    } catch (error) {
      await this.assertAlive(error);
      return () => reject(error);
    }
  }

  /** Throws if the whole transaction is gone, as after an error of the disk (https://sqlite.org/lang_transaction.html). */
  private async inSavepoint({ work, resolve, reject }: Task): Promise<Tell> {
    await this.connection.run("SAVEPOINT task");
    try {
      const value = await work();
      await this.connection.run("RELEASE task");
      return () => resolve(value);
    } catch (error) {
      await this.undo(error);
      return () => reject(error);
    }
  }

  private async assertAlive(error: unknown): Promise<void> {
    try {
      await this.connection.run("RELEASE alive");
      await this.connection.run(ALIVE);
    } catch {
      throw error;
    }
  }

  private async undo(error: unknown): Promise<void> {
    try {
      await this.connection.run("ROLLBACK TO task");
      await this.connection.run("RELEASE task");
    } catch {
      throw error;
    }
  }
}
