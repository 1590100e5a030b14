/**
 * The database port on PostgreSQL: SQLite's statements, rewritten if the dialects differ. No setting uses it yet. It
 * proves that the port fits both databases (test/conformance/database.test.ts).
 */
import type { Database, SqlValue } from "./database.ts";
import { SerialDatabase } from "./serial-database.ts";

/** The differences, in the order of rewriting. Text compares by bytes, as in SQLite. */
const DIALECT: readonly (readonly [RegExp, string])[] = [
  [/\) STRICT, WITHOUT ROWID$/, ")"],
  [/\) STRICT$/, ")"],
  [/\bINTEGER\b/g, "BIGINT"],
  [/\bREAL\b/g, "DOUBLE PRECISION"],
  [/\bBLOB\b/g, "BYTEA"],
  [/\bTEXT\b/g, 'TEXT COLLATE "C"'],
];

/** `bigint`, and `numeric`, which is what PostgreSQL sums `bigint` up to. */
const INTEGERS = [20, 1700];

/** `url`: `postgres://user:password@host:port/database`. Throws, with the cure, when the client is not installed. */
export async function openPostgresDatabase(url: string): Promise<Database> {
  const { default: pg } = await import("pg").catch((error: Error) => {
    throw new Error("PostgreSQL needs its client: npm install pg", { cause: error });
  });
  const client = new pg.Client({
    connectionString: url,
    types: {
      getTypeParser: (type, format) =>
        INTEGERS.includes(Number(type))
          ? exactInteger
          : pg.types.getTypeParser(type as number, format as "text"),
    },
  });
  await client.connect();
  const query = (sql: string, params: readonly SqlValue[]) =>
    client.query(rewritten(sql), params.map(toParameter));
  const connection = {
    all: async <T>(sql: string, params: readonly SqlValue[] = []) => (await query(sql, params)).rows as T[],
    run: async (sql: string, params: readonly SqlValue[] = []) => (await query(sql, params)).rowCount ?? 0,
    exec: async (sql: string) => {
      await client.query(sql);
    },
    close: () => client.end(),
  };
  return new SerialDatabase(connection, "BEGIN");
}

function rewritten(sql: string): string {
  let count = 0;
  const numbered = sql.replace(/\?/g, () => `$${++count}`);
  const isSchema = /^\s*(CREATE|ALTER) /.test(sql);
  return isSchema ? DIALECT.reduce((text, [pattern, by]) => text.replace(pattern, by), numbered) : numbered;
}

function toParameter(value: SqlValue): string | number | null | Buffer {
  if (value instanceof Uint8Array) return Buffer.from(value);
  // PostgreSQL keeps no NUL in a text.
  return typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;
}

/** As with SQLite's drivers, an integer that a number cannot hold is an error, not another number. */
function exactInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`${text} is too large for a number`);
}
