/**
 * The two drivers of SQLite behind one small synchronous interface: `node:sqlite` if this Node has it (22.13 and
 * later), else better-sqlite3. A driver is loaded when it is used, so only one of them must be there.
 */
import { createRequire } from "node:module";
import { CannotStart } from "../contracts/cannot-start.ts";
import type { Row, SqlValue } from "./database.ts";

export interface SqliteDriver {
  all(sql: string, params: readonly SqlValue[]): Row[];
  run(sql: string, params: readonly SqlValue[]): number;
  /** Statements without parameters or results. */
  exec(sql: string): void;
  close(): void;
}

interface NativeStatement {
  all(...params: readonly SqlValue[]): unknown[];
  run(...params: readonly SqlValue[]): { changes: number | bigint };
  /** In better-sqlite3 only: whether the statement changes nothing, and whether integers are returned as bigints. */
  readonly?: boolean;
  safeIntegers?(isOn: boolean): NativeStatement;
}
interface NativeDatabase {
  prepare(sql: string): NativeStatement;
  exec(sql: string): void;
  close(): void;
}

/** Opens `file`, which is made if missing. Throws an error with the cure if no driver is installed. */
export function openSqlite(file: string): SqliteDriver {
  const native = openNodeSqlite(file) ?? openBetterSqlite(file);
  const prepared = new Map<string, NativeStatement>();
  const prepare = (sql: string) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = native.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
  return {
    all: (sql, params) => exactRows(prepare(sql), params),
    run: (sql, params) => Number(prepare(sql).run(...params).changes),
    exec: (sql) => native.exec(sql),
    close: () => native.close(),
  };
}

/**
 * node:sqlite throws if a number cannot hold an integer. better-sqlite3 rounds it to an unsafe integer, and a large
 * REAL looks the same. So the rows are read again with exact integers: a REAL is still a number then.
 */
function exactRows(statement: NativeStatement, params: readonly SqlValue[]): Row[] {
  const rows = statement.all(...params) as Row[];
  const unsafe = statement.safeIntegers === undefined ? undefined : nameOfUnsafe(rows);
  if (unsafe === undefined) return rows;
  const integers = statement.readonly ? (statement.safeIntegers!(true).all(...params) as Row[]) : [];
  statement.safeIntegers!(false);
  const isReal = integers.length === rows.length && !integers.some(hasLargeInteger);
  if (!isReal) throw new RangeError(`${unsafe} is too large for a number`);
  return rows;
}

function nameOfUnsafe(rows: readonly Row[]): string | undefined {
  for (const row of rows) {
    for (const name in row) {
      const value = row[name];
      if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) return name;
    }
  }
  return undefined;
}

function hasLargeInteger(row: Row): boolean {
  return Object.values(row).some(
    (value: unknown) => typeof value === "bigint" && !Number.isSafeInteger(Number(value)),
  );
}

function openNodeSqlite(file: string): NativeDatabase | undefined {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 13)) return undefined;
  const { DatabaseSync } = withoutExperimentalWarning(() =>
    createRequire(import.meta.url)("node:sqlite"),
  ) as {
    DatabaseSync: new (file: string) => NativeDatabase;
  };
  return new DatabaseSync(file);
}

/** Node 22 prints a warning when the module is loaded; users can do nothing about it. */
function withoutExperimentalWarning<T>(load: () => T): T {
  const original = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = original;
  }
}

function openBetterSqlite(file: string): NativeDatabase {
  try {
    const BetterSqlite = createRequire(import.meta.url)("better-sqlite3") as new (
      file: string,
    ) => NativeDatabase;
    return new BetterSqlite(file);
  } catch (error) {
    if (!/Cannot find module|bindings file/.test((error as Error).message)) throw error;
    const cure = "use Node 22.13 or later, or run `npm rebuild better-sqlite3` (needs a C++ compiler)";
    throw new CannotStart("no_sqlite", `this Node (${process.version}) has no SQLite: ${cure}`, error);
  }
}

/** SQLITE_CORRUPT and SQLITE_NOTADB, as node:sqlite and better-sqlite3 report them. */
export function isDamaged(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === "number") return [11, 26].includes(errcode & 0xff);
  return /^SQLITE_(CORRUPT|NOTADB)/.test(String(code));
}
