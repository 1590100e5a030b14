/**
 * A byte-level validator of JSON objects on one line each, without building them: what `JSON.parse` accepts and is a
 * plain object, held together by a property test. Nesting is capped at 1,023. UTF-8 is checked a block at a time by
 * the caller (bytes from 0x80 on are legal inside strings only).
 */

const NEWLINE = 0x0a;
const DEPTH_MAX = 1023;
const OBJECT = 1;
const ARRAY = 0;

/** 1: ends the run of plain bytes inside a string (quote, backslash, control character). */
const ENDS_RUN = new Uint8Array(256);
for (let byte = 0; byte < 0x20; byte++) ENDS_RUN[byte] = 1;
ENDS_RUN[0x22] = 1;
ENDS_RUN[0x5c] = 1;

/** 1: may follow a backslash; 2: the `u` of four hexadecimal digits. */
const ESCAPES = new Uint8Array(256);
for (const letter of '"\\/bfnrt') ESCAPES[letter.charCodeAt(0)] = 1;
ESCAPES[0x75] = 2;

export type LineKind = "object" | "blank" | "invalid";

/** Reads one line after another of a block; the fields hold what the last `next` found. */
export class LineScanner {
  kind: LineKind = "blank";
  /** After the line's newline. */
  next = 0;
  /** White space between tokens, in bytes, the newline not counted. */
  spaces = 0;
  /** What is wrong with an invalid line. */
  problem = "";
  private readonly stack = new Uint8Array(DEPTH_MAX + 1);
  private block: Buffer = Buffer.alloc(0);
  private end = 0;

  /** Scans the line that begins at `at`; `end` is the block's end, which must be the end of a line or of the file. */
  scan(block: Buffer, at: number, end: number): void {
    this.block = block;
    this.end = end;
    this.spaces = 0;
    at = this.skipSpace(at);
    if (at >= end || block[at] === NEWLINE) {
      this.kind = "blank";
      this.next = at + 1;
      return;
    }
    const after = block[at] === 0x7b ? this.object(at + 1) : this.fail(at, "does not begin with {");
    const rest = after < 0 ? after : this.skipSpace(after);
    if (rest < 0 || (rest < end && block[rest] !== NEWLINE)) {
      if (rest >= 0) this.fail(rest, "has text after the object");
      this.kind = "invalid";
      const newline = block.indexOf(NEWLINE, at);
      this.next = newline < 0 || newline >= end ? end : newline + 1;
      return;
    }
    this.kind = "object";
    this.next = rest + 1;
  }

  private skipSpace(at: number): number {
    const { block, end } = this;
    const start = at;
    while (at < end) {
      const byte = block[at];
      if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) break;
      at++;
    }
    this.spaces += at - start;
    return at;
  }

  /** The rest of an object whose `{` has been read; the position after its `}`, or -1. */
  private object(at: number): number {
    const { block, stack } = this;
    let depth = 1;
    stack[1] = OBJECT;
    at = this.skipSpace(at);
    if (block[at] === 0x7d && at < this.end) return at + 1;
    at = this.member(at);
    for (;;) {
      if (at < 0) return at;
      // A value is expected here.
      if (block[at]! <= 0x20) at = this.skipSpace(at);
      const byte = at < this.end ? block[at]! : -1;
      if (byte === 0x7b || byte === 0x5b) {
        if (++depth > DEPTH_MAX) return this.fail(at, `is nested deeper than ${DEPTH_MAX}`);
        stack[depth] = byte === 0x7b ? OBJECT : ARRAY;
        at = this.skipSpace(at + 1);
        const closing = byte === 0x7b ? 0x7d : 0x5d;
        if (at >= this.end || block[at] !== closing) {
          if (byte === 0x7b) at = this.member(at);
          continue;
        }
        depth--;
        at++;
      } else {
        at = this.scalar(at, byte);
        if (at < 0) return at;
      }
      // A value has ended: closings, then a comma.
      for (;;) {
        if (depth === 0) return at;
        if (block[at]! <= 0x20) at = this.skipSpace(at);
        const after = at < this.end ? block[at]! : -1;
        if (after === 0x2c) {
          at = this.skipSpace(at + 1);
          if (stack[depth] === OBJECT) at = this.member(at);
          break;
        }
        if (after !== (stack[depth] === OBJECT ? 0x7d : 0x5d))
          return this.fail(at, after < 0 || after === NEWLINE ? "ends too early" : "is not valid JSON");
        depth--;
        at++;
      }
    }
  }

  /** A member's name and colon; the position of its value, or -1. */
  private member(at: number): number {
    if (at >= this.end || this.block[at] !== 0x22)
      return this.fail(at, "is not valid JSON: a member's name in quotes was expected");
    at = this.string(at + 1);
    if (at < 0) return at;
    at = this.skipSpace(at);
    if (at >= this.end || this.block[at] !== 0x3a)
      return this.fail(at, 'is not valid JSON: ":" was expected');
    return this.skipSpace(at + 1);
  }

  private scalar(at: number, first: number): number {
    switch (first) {
      case 0x22:
        return this.string(at + 1);
      case 0x74:
        return this.word(at, "true");
      case 0x66:
        return this.word(at, "false");
      case 0x6e:
        return this.word(at, "null");
      default:
        return this.number(at, first);
    }
  }

  private string(at: number): number {
    const { block, end } = this;
    for (;;) {
      while (at < end && ENDS_RUN[block[at]!] === 0) at++;
      if (at >= end) return this.fail(at, "ends inside a string");
      const byte = block[at]!;
      if (byte === 0x22) return at + 1;
      if (byte !== 0x5c)
        return this.fail(
          at,
          byte === NEWLINE ? "ends inside a string" : "has a control character inside a string",
        );
      const escaped = at + 1 < end ? ESCAPES[block[at + 1]!]! : 0;
      if (escaped === 0) return this.fail(at, "has an unknown escape inside a string");
      at += 2;
      if (escaped === 2) {
        for (const stop = at + 4; at < stop; at++)
          if (at >= end || !isHex(block[at]!)) return this.fail(at, "has a bad \\u escape");
      }
    }
  }

  private word(at: number, word: string): number {
    for (let i = 0; i < word.length; i++) {
      if (at + i >= this.end || this.block[at + i] !== word.charCodeAt(i))
        return this.fail(at, "is not valid JSON: a value was expected");
    }
    return at + word.length;
  }

  private number(at: number, first: number): number {
    const { block, end } = this;
    const digits = () => {
      const start = at;
      while (at < end && block[at]! >= 0x30 && block[at]! <= 0x39) at++;
      return at - start;
    };
    if (first === 0x2d) at++;
    if (at < end && block[at] === 0x30) at++;
    else if (digits() === 0) return this.fail(at, "is not valid JSON: a value was expected");
    if (at < end && block[at] === 0x2e) {
      at++;
      if (digits() === 0) return this.fail(at, "has a number without digits after its point");
    }
    if (at < end && (block[at]! | 0x20) === 0x65) {
      at++;
      if (at < end && (block[at] === 0x2b || block[at] === 0x2d)) at++;
      if (digits() === 0) return this.fail(at, "has a number without digits in its exponent");
    }
    return at;
  }

  private fail(_at: number, problem: string): -1 {
    this.problem = problem;
    return -1;
  }
}

function isHex(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}
