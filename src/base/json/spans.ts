/**
 * Cuts values out of a JSON text as the bytes that the user wrote, so their numbers are never rounded. The text must be
 * a document that `JSON.parse` or `jsonFault` has already accepted.
 */
import { QUOTE, skipSpace, skipString, skipValue } from "./tokens.ts";

export interface Span {
  start: number;
  end: number;
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
