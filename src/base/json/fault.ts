/** Finds where a text is not JSON, or exceeds a limit. */
import {
  BACKSLASH,
  COMMA,
  isDelimiter,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipUnquoted,
} from "./tokens.ts";

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
    if (value === undefined) return fault("expected a name and a colon");
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
  const found = NUMBER.exec(text.toString("latin1", at, skipUnquoted(text, at)));
  return found === null ? undefined : at + found[0].length;
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
