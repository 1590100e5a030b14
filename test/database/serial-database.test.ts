/** One connection to SQLite: what waits together is committed together, and each change succeeds or fails alone. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CHANGES_TOGETHER_MAX } from "../../src/contracts/limits/database.ts";
import { SLICE_MS } from "../../src/contracts/limits/event-loop.ts";
import type { SqlValue } from "../../src/database/database.ts";
import { SerialDatabase } from "../../src/database/serial-database.ts";
import { openSqlite, type SqliteDriver } from "../../src/database/sqlite-drivers.ts";

describe("changes", () => {
  let driver: SqliteDriver;
  let db: SerialDatabase;
  let statements: string[];
  /** Called before each statement. */
  let before: (sql: string) => void;
  beforeEach(() => {
    driver = openSqlite(":memory:");
    driver.exec("CREATE TABLE t (n INTEGER PRIMARY KEY)");
    [statements, before] = [[], () => {}];
    const note = (sql: string) => {
      before(sql);
      statements.push(sql);
    };
    const connection = {
      all: async <T>(sql: string, params: readonly SqlValue[] = []) => {
        note(sql);
        return driver.all(sql, params) as T[];
      },
      run: async (sql: string, params: readonly SqlValue[] = []) => {
        note(sql);
        return driver.run(sql, params);
      },
      exec: async (sql: string) => {
        note(sql);
        driver.exec(sql);
      },
      close: async () => driver.close(),
    };
    db = new SerialDatabase(connection, "BEGIN IMMEDIATE");
  });
  afterEach(() => db.close());

  const insert = (n: number) => db.run("INSERT INTO t VALUES (?)", [n]);
  const insertBoth = (a: number, b: number) =>
    db.transaction(async (tx) => {
      await tx.run("INSERT INTO t VALUES (?)", [a]);
      await tx.run("INSERT INTO t VALUES (?)", [b]);
      return [a, b];
    });
  const numbers = () => driver.all("SELECT n FROM t ORDER BY n", []).map(({ n }) => n);
  const commits = () => statements.filter((sql) => sql === "COMMIT").length;
  const states = async (tasks: Promise<unknown>[]) =>
    (await Promise.allSettled(tasks)).map(({ status }) => status);

  it("that wait alone are not in a group", async () => {
    await insert(1);
    await insertBoth(2, 3);
    const inserted = "INSERT INTO t VALUES (?)";
    expect(statements).toEqual([inserted, "BEGIN IMMEDIATE", inserted, inserted, "COMMIT"]);
  });

  it("that wait together share a commit, in their order", async () => {
    const results = await Promise.all([insert(1), insertBoth(2, 3), insert(4), db.all("SELECT n FROM t")]);
    expect(results).toEqual([1, [2, 3], 1, [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]]);
    expect(commits()).toBe(1);
  });

  it("that come in one turn of the event loop share the next commit", async () => {
    const first = insert(1);
    await first;
    const others = [insert(2), new Promise<number>((resolve) => queueMicrotask(() => resolve(insert(3))))];
    await Promise.all(others);
    expect(commits()).toBe(1);
  });

  it("that fail are undone alone", async () => {
    const tasks = [insert(1), insertBoth(2, 1), insert(1), insertBoth(4, 5)];
    expect(await states(tasks)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(numbers()).toEqual([1, 4, 5]);
    expect(commits()).toBe(1);
  });

  it("and what queries saw of them are told to nobody before the commit", async () => {
    const told: string[] = [];
    before = (sql) => void (sql === "COMMIT" && told.push("commit"));
    await Promise.all([
      insert(1).then(() => told.push("first")),
      db.all("SELECT n FROM t").then((rows) => told.push(`query of ${rows.length}`)),
      insert(2).then(() => told.push("second")),
    ]);
    expect(told).toEqual(["commit", "first", "query of 1", "second"]);
  });

  it("all fail if their commit fails, and later ones do not", async () => {
    before = (sql) => {
      if (sql !== "COMMIT") return;
      before = () => {};
      throw new Error("the disk is full");
    };
    expect(await states([insert(1), insertBoth(2, 3)])).toEqual(["rejected", "rejected"]);
    expect(numbers()).toEqual([]);
    expect(await states([insert(1), insert(2)])).toEqual(["fulfilled", "fulfilled"]);
  });

  it("all fail if an error has ended the transaction, but for those that had not begun", async () => {
    const lost = async () => {
      // As SQLite does after some errors of the disk.
      driver.exec("ROLLBACK");
      throw new Error("the disk is full");
    };
    const tasks = [insert(1), db.transaction(lost), insert(3), insert(4)];
    expect(await states(tasks)).toEqual(["rejected", "rejected", "fulfilled", "fulfilled"]);
    await expect(tasks[0]).rejects.toThrow("the disk is full");
    expect(numbers()).toEqual([3, 4]);
  });

  it("all fail if a statement has ended the transaction with its error", async () => {
    before = (sql) => {
      if (!sql.startsWith("INSERT") || statements.length < 3) return;
      before = () => {};
      driver.exec("ROLLBACK");
      throw new Error("the disk is full");
    };
    expect(await states([insert(1), insert(2), insert(3)])).toEqual(["rejected", "rejected", "fulfilled"]);
    expect(numbers()).toEqual([3]);
  });

  it("all fail if a transaction hid such an error", async () => {
    const hidden = async () => driver.exec("ROLLBACK");
    expect(await states([insert(1), db.transaction(hidden)])).toEqual(["rejected", "rejected"]);
    expect(numbers()).toEqual([]);
  });

  it("fail one after the other while no transaction can begin", async () => {
    before = (sql) => {
      if (sql.startsWith("BEGIN")) throw new Error("the disk is full");
    };
    // The last one is alone, and a statement needs no beginning.
    expect(await states([insert(1), insert(2), insert(3)])).toEqual(["rejected", "rejected", "fulfilled"]);
    expect(numbers()).toEqual([3]);
  });

  it("are in groups of a bounded number and time, and others have the event loop between these", async () => {
    const count = 2 * CHANGES_TOGETHER_MAX;
    let turns = 0;
    const turn = () => {
      turns++;
      if (turns < 1_000) setImmediate(turn);
    };
    setImmediate(turn);
    const slow = Array.from({ length: 3 }, () =>
      db.transaction(async () => {
        const endMs = performance.now() + SLICE_MS;
        while (performance.now() < endMs);
        return turns;
      }),
    );
    expect(new Set(await Promise.all(slow)).size).toBe(3);
    await Promise.all(Array.from({ length: count }, (_, n) => insert(n)));
    expect(numbers()).toHaveLength(count);
    expect(commits()).toBe(3 + 2);
  });
});
