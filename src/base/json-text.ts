/**
 * JSON as text. Users' numbers are never rounded again, because their values travel as the bytes that they wrote.
 * `memberSpans` and `elementSpans` cut such texts out of a document that `JSON.parse` or `jsonFault` has already
 * accepted.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const COMMA = 0x2c;

export interface Span {
  start: number;
  end: number;
}

export function skipSpace(text: Buffer, at: number): number {
  while (text[at] === 0x20 || text[at] === 0x0a || text[at] === 0x0d || text[at] === 0x09) at++;
  return at;
}

function skipString(text: Buffer, at: number): number {
  for (at++; text[at] !== QUOTE; at++) if (text[at] === BACKSLASH) at++;
  return at + 1;
}

/** The end of the value that begins at `at`. The document must be valid JSON. */
function skipValue(text: Buffer, at: number): number {
  const first = text[at];
  if (first === QUOTE) return skipString(text, at);
  if (first !== 0x7b && first !== 0x5b) {
    while (at < text.length && !isDelimiter(text[at]!)) at++;
    return at;
  }
  let depth = 0;
  for (;;) {
    const byte = text[at]!;
    if (byte === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) depth++;
    if (byte === 0x7d || byte === 0x5d) depth--;
    at++;
    if (depth === 0) return at;
  }
}

function isDelimiter(byte: number): boolean {
  return byte === 0x2c || byte === 0x7d || byte === 0x5d || byte <= 0x20;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

export interface JsonLimits {
  /** How deep arrays and objects may be nested. */
  depth: number;
  /** Characters of a number, its sign included. */
  numberCharacters: number;
}
/**
 * The position at which a text is not JSON or exceeds a limit; undefined if it is JSON. Unlike `JSON.parse` it creates
 * no values: those of 10 MB of empty objects would take 200 MB.
 */
export function jsonFault(text: Buffer, limits: JsonLimits): { at: number; why: string } | undefined {
  /** The open containers: 1 is an object, 0 an array. */
  const open = new Uint8Array(limits.depth);
  let depth = 0;
  let at = skipSpace(text, 0);
  const fault = (why = at < text.length ? "unexpected character" : "unexpected end") => ({ at, why });
  for (;;) {
    // A value begins here.
    const first = text[at];
    const isContainer = first === OPEN_BRACE || first === OPEN_BRACKET;
    if (isContainer && depth === limits.depth) return fault(`nested deeper than ${limits.depth}`);
    if (isContainer) open[depth++] = first === OPEN_BRACE ? 1 : 0;
    const end = isContainer ? skipSpace(text, at + 1) : scalarEnd(text, at);
    if (end === undefined) return fault();
    if (!isContainer && first !== QUOTE && end - at > limits.numberCharacters)
      return fault(`a number of over ${limits.numberCharacters} characters`);
    at = end;
    // Values end here, until the next one begins.
    let isNext = isContainer && text[at] !== closing(open[depth - 1]!);
    while (!isNext) {
      at = skipSpace(text, at);
      if (depth === 0) return at === text.length ? undefined : fault();
      isNext = text[at] === COMMA;
      if (!isNext && text[at] !== closing(open[depth - 1]!)) return fault();
      if (!isNext) depth--;
      at++;
    }
    at = skipSpace(text, at);
    if (open[depth - 1] !== 1) continue;
    const value = nameEnd(text, at);
    if (value === undefined) return fault("a name and a colon are expected");
    at = value;
  }
}

function closing(kind: number): number {
  return kind === 1 ? 0x7d : 0x5d;
}

/** The position after a name and its colon. */
function nameEnd(text: Buffer, at: number): number | undefined {
  const end = text[at] === QUOTE ? stringEnd(text, at) : undefined;
  if (end === undefined) return undefined;
  const colon = skipSpace(text, end);
  return text[colon] === 0x3a ? skipSpace(text, colon + 1) : undefined;
}

function scalarEnd(text: Buffer, at: number): number | undefined {
  const first = text[at];
  if (first === QUOTE) return stringEnd(text, at);
  for (const word of ["true", "false", "null"])
    if (first === word.charCodeAt(0))
      return text.toString("latin1", at, at + word.length) === word ? at + word.length : undefined;
  // Most numbers are a few digits.
  let end = at;
  while (text[end]! >= 0x30 && text[end]! <= 0x39) end++;
  if (end > at && isEnd(text[end]) && (first !== 0x30 || end === at + 1)) return end;
  NUMBER.lastIndex = 0;
  const found = NUMBER.exec(text.toString("latin1", at, numberEnd(text, at)));
  return found === null ? undefined : at + found[0].length;
}

/** The first position from `at` on whose character cannot be in a number. */
function numberEnd(text: Buffer, at: number): number {
  while (at < text.length && !isDelimiter(text[at]!)) at++;
  return at;
}

function isEnd(byte: number | undefined): boolean {
  return byte === undefined || isDelimiter(byte);
}

function stringEnd(text: Buffer, start: number): number | undefined {
  for (let at = start + 1; at < text.length; ) {
    const byte = text[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return undefined;
    if (byte !== BACKSLASH) {
      at++;
      continue;
    }
    ESCAPE.lastIndex = 0;
    const found = ESCAPE.exec(text.toString("latin1", at, at + 6));
    if (found === null) return undefined;
    at += found[0].length;
  }
  return undefined;
}

/** How deep arrays and objects are nested in the value of `span`. */
export function depthOf(text: Buffer, { start, end }: Span): number {
  let deepest = 0;
  for (let at = start, depth = 0; at < end; ) {
    const byte = text[at]!;
    if (byte === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth);
    if (byte === 0x7d || byte === 0x5d) depth--;
    at++;
  }
  return deepest;
}

/**
 * Whether arrays and objects are nested deeper than `most`, in any bytes: they need not be JSON. Stops as soon as this
 * is certain.
 */
export function isDeeperThan(text: Buffer, most: number): boolean {
  // Each level takes two bytes.
  if (text.length <= 2 * most) return false;
  let isString = false;
  for (let at = 0, depth = 0; at < text.length; at++) {
    const byte = text[at]!;
    if (byte === QUOTE) isString = !isString;
    else if (isString) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > most) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}

/**
 * Whether there are more objects, arrays, members and elements than `most`, in any bytes: they need not be JSON. Stops
 * as soon as this is certain.
 */
export function hasMoreValues(text: Buffer, most: number): boolean {
  let isString = false;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]!;
    if (byte === QUOTE) isString = !isString;
    else if (isString) at += byte === BACKSLASH ? 1 : 0;
    else if ((byte === OPEN_BRACE || byte === OPEN_BRACKET || byte === COMMA) && ++values > most) return true;
  }
  return false;
}

/**
 * The members of the object in `span`, by name. If a name is duplicate the last one wins, as in `JSON.parse`. If the
 * object has more than `most` members, only the first `most` and one more are returned.
 */
export function memberSpans(text: Buffer, span: Span, most = Number.POSITIVE_INFINITY): Map<string, Span> {
  const members = new Map<string, Span>();
  let at = skipSpace(text, skipSpace(text, span.start) + 1);
  while (text[at] !== 0x7d && members.size <= most) {
    const nameEnd = skipString(text, at);
    const name = JSON.parse(text.toString("utf8", at, nameEnd)) as string;
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    members.set(name, { start, end });
    at = skipSpace(text, end);
    if (text[at] === 0x2c) at = skipSpace(text, at + 1);
  }
  return members;
}

/** The text of one member of an object. */
export function memberText(text: string, name: string): string {
  const bytes = Buffer.from(text);
  const { start, end } = memberSpans(bytes, { start: 0, end: bytes.length }).get(name)!;
  return bytes.toString("utf8", start, end);
}

/** The elements of the array in `span`, in order. */
export function* elementSpans(text: Buffer, span: Span): Generator<Span> {
  let at = skipSpace(text, skipSpace(text, span.start) + 1);
  while (text[at] !== 0x5d) {
    const end = skipValue(text, at);
    yield { start: at, end };
    at = skipSpace(text, end);
    if (text[at] === 0x2c) at = skipSpace(text, at + 1);
  }
}

/** Writes a value to `out` at `at`, without the white space between its tokens. Returns where it ends. */
export function writeCompact(text: Buffer, span: Span, out: Buffer, at: number): number {
  for (let from = span.start; from < span.end; ) {
    const byte = text[from]!;
    if (byte === QUOTE) {
      const end = skipString(text, from);
      at += text.copy(out, at, from, end);
      from = end;
    } else {
      if (byte > 0x20) out[at++] = byte;
      from++;
    }
  }
  return at;
}

/** The bytes of a value without white space between its tokens. */
export function compactJson(text: Buffer, span: Span): Buffer {
  const out = Buffer.allocUnsafe(span.end - span.start);
  return out.subarray(0, writeCompact(text, span, out, 0));
}

/** `JSON.stringify`, with the members named in `raw` written as the JSON texts given there. Big integers are exact. */
export function stringifyWithRaw(value: Record<string, unknown>, raw: Record<string, string>): string {
  const parts: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined && !Object.hasOwn(raw, name))
      parts.push(`${JSON.stringify(name)}:${stringifyExact(member)}`);
  }
  for (const [name, text] of Object.entries(raw)) parts.push(`${JSON.stringify(name)}:${text}`);
  return `{${parts.join(",")}}`;
}

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
