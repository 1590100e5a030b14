/** Steps over the tokens of a JSON text, byte by byte. It creates no values. The text must be valid JSON. */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const OPEN_BRACKET = 0x5b;
export const COMMA = 0x2c;

export function skipSpace(text: Buffer, at: number): number {
  while (text[at] === 0x20 || text[at] === 0x0a || text[at] === 0x0d || text[at] === 0x09) at++;
  return at;
}

export function skipString(text: Buffer, at: number): number {
  for (at++; text[at] !== QUOTE; at++) if (text[at] === BACKSLASH) at++;
  return at + 1;
}

/** The end of the value that begins at `at`. */
export function skipValue(text: Buffer, at: number): number {
  const first = text[at];
  if (first === QUOTE) return skipString(text, at);
  if (first !== 0x7b && first !== 0x5b) return skipUnquoted(text, at);
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

/** The first position from `at` on whose byte cannot be in a number, `true`, `false` or `null`. */
export function skipUnquoted(text: Buffer, at: number): number {
  while (at < text.length && !isDelimiter(text[at]!)) at++;
  return at;
}

/** Whether no number, `true`, `false` or `null` contains this byte. */
export function isDelimiter(byte: number): boolean {
  return byte === 0x2c || byte === 0x7d || byte === 0x5d || byte <= 0x20;
}
