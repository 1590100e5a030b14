/** Parses and writes JSON like `JSON.parse` and `JSON.stringify`, but with every number as it was written. */
import { elementSpans, memberSpans, type Span } from "./spans.ts";
import { skipSpace, skipValue } from "./tokens.ts";

/** A number as it was written: JSON distinguishes 1 from 1.0, and allows any number of digits. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isInteger(): boolean {
    return /^-?\d+$/.test(this.text);
  }
}

/** `JSON.parse` of a valid text, with each number as a JsonNumber. */
export function parseExact(text: string): unknown {
  const bytes = Buffer.from(text);
  const exactly = ({ start, end }: Span): unknown => {
    const first = bytes[start]!;
    if (first === 0x7b)
      return Object.fromEntries(
        [...memberSpans(bytes, { start, end })].map(([name, span]) => [name, exactly(span)]),
      );
    if (first === 0x5b) return Array.from(elementSpans(bytes, { start, end }), exactly);
    const scalar = bytes.toString("utf8", start, end);
    return first === 0x2d || (first >= 0x30 && first <= 0x39) ? new JsonNumber(scalar) : JSON.parse(scalar);
  };
  const start = skipSpace(bytes, 0);
  return exactly({ start, end: skipValue(bytes, start) });
}

/**
 * A JSON text over several lines, formatted as by `JSON.stringify(value, null, 2)`, with every number as it was
 * written.
 */
export function prettyJson(text: string): string {
  const write = (value: unknown, indent: string): string => {
    if (value === null || typeof value !== "object" || value instanceof JsonNumber)
      return stringifyExact(value);
    const inner = `${indent}  `;
    const isList = Array.isArray(value);
    const parts = isList
      ? value.map((item) => inner + write(item, inner))
      : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${write(item, inner)}`);
    const [open, close] = isList ? "[]" : "{}";
    return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.join(",\n")}\n${indent}${close}`;
  };
  return write(parseExact(text), "");
}

/** `JSON.stringify` that also takes bigint, as an exact integer, and JsonNumber. */
export function stringifyExact(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(stringifyExact).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${stringifyExact(member)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/**
 * `JSON.stringify`, with the members named in `raw` written as the JSON texts given there: in their places, or last. Big
 * integers are exact.
 */
export function stringifyWithRaw(value: object, raw: Record<string, string>): string {
  const parts: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(raw, name)) parts.push(`${JSON.stringify(name)}:${raw[name]}`);
    else if (member !== undefined) parts.push(`${JSON.stringify(name)}:${stringifyExact(member)}`);
  }
  for (const [name, text] of Object.entries(raw))
    if (!Object.hasOwn(value, name)) parts.push(`${JSON.stringify(name)}:${text}`);
  return `{${parts.join(",")}}`;
}
