/** Measures a JSON text before anything parses it: how deep it is nested, and whether it has too many values. */
import type { Span } from "./spans.ts";
import { BACKSLASH, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipString } from "./tokens.ts";

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
 * Counts the objects, arrays, members and elements of a text that comes in pieces, so that a long one can be counted in
 * several turns. The bytes need not be JSON.
 */
export class ValueCount {
  private readonly most: number;
  private values = 0;
  private isString = false;
  private isEscaped = false;

  constructor(most: number) {
    this.most = most;
  }

  /** Whether there are more than `most`, up to the end of this piece. Stops as soon as this is certain. */
  isOverIn(piece: Buffer): boolean {
    let { values, isString, isEscaped } = this;
    for (let at = 0; at < piece.length && values <= this.most; at++) {
      const byte = piece[at]!;
      if (isEscaped) isEscaped = false;
      else if (byte === QUOTE) isString = !isString;
      else if (isString) isEscaped = byte === BACKSLASH;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET || byte === COMMA) values++;
    }
    Object.assign(this, { values, isString, isEscaped });
    return values > this.most;
  }
}
