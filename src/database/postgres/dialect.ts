/** SQLite's statements as PostgreSQL takes them, and its values as SQLite's drivers return them. */
import type { SqlValue } from "../database.ts";

/**
 * The differences in statements about tables, in the order of rewriting. Text compares by bytes, as in SQLite, and
 * numbers have 64 bits.
 */
const TABLES: readonly (readonly [RegExp, string])[] = [
  [/\) STRICT, WITHOUT ROWID$/, ")"],
  [/\) STRICT$/, ")"],
  [/\bINTEGER\b/g, "BIGINT"],
  [/\bREAL\b/g, "DOUBLE PRECISION"],
  [/\bBLOB\b/g, "BYTEA"],
  [/\bTEXT\b/g, 'TEXT COLLATE "C"'],
];
const NUL = /\0/g;

/** The ids of types, as PostgreSQL numbers them: `bigint`, and `numeric`, which is what it sums `bigint` up to. */
const INT8 = 20;
const NUMERIC = 1700;

export function rewritten(sql: string): string {
  let count = 0;
  const numbered = sql.replace(/\?/g, () => `$${++count}`);
  const isAboutTables = /^\s*(CREATE|ALTER) /.test(sql);
  return isAboutTables
    ? TABLES.reduce((text, [pattern, by]) => text.replace(pattern, by), numbered)
    : numbered;
}

/** PostgreSQL keeps no NUL in a text. As with half a surrogate pair, what cannot be kept becomes U+FFFD. */
export function toParameter(value: SqlValue): string | number | null | Buffer {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return typeof value === "string" && value.includes("\0") ? value.replace(NUL, "\ufffd") : value;
}

/** The reader of a type that must not be read as the client reads it; undefined for every other type. */
export function readerOf(type: number): ((text: string) => number) | undefined {
  if (type === INT8) return exactInteger;
  return type === NUMERIC ? number : undefined;
}

/** As with SQLite's drivers, an integer that a number cannot hold is an error, not another number. */
function exactInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`${text} is too large for a number`);
}

function number(text: string): number {
  return /^-?\d+$/.test(text) ? exactInteger(text) : Number(text);
}
