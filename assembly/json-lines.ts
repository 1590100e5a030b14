/**
 * A validator of JSON objects on one line each, without building them, in AssemblyScript: what `JSON.parse` accepts and is a
 * plain object, held together by a property test. In WebAssembly because strings are skipped sixteen bytes at a time; its host is
 * src/batch/enqueue/line-scanner.ts, which says what each problem is in words. UTF-8 is the host's business (bytes from 0x80 on are
 * legal inside strings only).
 *
 * The host writes lines to INPUT and a newline behind the last one, which no token goes past: nothing here asks for the end.
 */

/** Where lines are written to, behind the table; READ_PAST more bytes must be there behind the last newline. */
export const INPUT: usize = 1024 * 66;
export const READ_PAST: usize = 16;

/** What was found: (u32 end of the line, behind its newline; u32 bytes without white space between tokens, 0: a blank line)*. */
export const TABLE: usize = 2048;
export const LINES_MAX: i32 = 8 * 1024;

/** What is wrong with the line that `scan` stopped at: the host has the words. */
export enum Problem {
  NONE,
  NO_BRACE,
  TEXT_AFTER,
  TOO_DEEP,
  TOO_EARLY,
  NO_COMMA,
  NO_NAME,
  NO_COLON,
  NO_VALUE,
  OPEN_STRING,
  CONTROL_CHARACTER,
  ESCAPE,
  UNICODE_ESCAPE,
  NO_FRACTION,
  NO_EXPONENT,
  LONG_NUMBER,
}

/** ITEM_DEPTH_MAX of src/contracts/limits/submissions.ts; the stack has room for 1,023. */
const DEPTH_MAX: i32 = 900;
/** NUMBER_CHARACTERS_MAX there. */
const NUMBER_MAX: usize = 4300;
/** One byte a level: what it was opened with. */
const STACK: usize = 0;

const NEWLINE: u8 = 0x0a;
const QUOTE: u8 = 0x22;
const COMMA: u8 = 0x2c;
const COLON: u8 = 0x3a;
const BACKSLASH: u8 = 0x5c;
const OPEN_ARRAY: u8 = 0x5b;
const OPEN_OBJECT: u8 = 0x7b;
/** `]` behind `[`, `}` behind `{`. */
const TO_CLOSING: u8 = 2;

/** No token ends at position 0: that is the stack. */
const FAILED: usize = 0;

let found: Problem = Problem.NONE;
/** White space between the tokens of the line. */
let spaces: usize = 0;

export function problem(): Problem {
  return found;
}

/** Fills the table with lines from `at` to `end`; returns how many. Stops before a line that is not an object: see `problem`. */
export function scan(at: usize, end: usize): i32 {
  found = Problem.NONE;
  let count = 0;
  let row = TABLE;
  while (at < end && count < LINES_MAX) {
    const start = at;
    spaces = 0;
    at = skipSpace(at);
    let compact: usize = 0;
    if (load<u8>(at) !== NEWLINE) {
      at = line(at);
      if (at === FAILED) break;
      compact = at - start - spaces;
    }
    at++;
    store<u32>(row, u32(at));
    store<u32>(row, u32(compact), 4);
    row += 8;
    count++;
  }
  return count;
}

function fail(problem: Problem): usize {
  found = problem;
  return FAILED;
}

/** From the first token on; where its newline is. */
function line(at: usize): usize {
  if (load<u8>(at) !== OPEN_OBJECT) return fail(Problem.NO_BRACE);
  at = object(at);
  if (at === FAILED) return FAILED;
  at = skipSpace(at);
  return load<u8>(at) === NEWLINE ? at : fail(Problem.TEXT_AFTER);
}

function skipSpace(at: usize): usize {
  return load<u8>(at) > 0x20 ? at : skipSpaces(at);
}

function skipSpaces(at: usize): usize {
  const start = at;
  for (let byte = load<u8>(at); byte === 0x20 || byte === 0x09 || byte === 0x0d; byte = load<u8>(at)) at++;
  spaces += at - start;
  return at;
}

/** The object that begins at `at`, with all that is in it; the position after its `}`. */
function object(at: usize): usize {
  let depth = 0;
  let opening: u8 = 0;
  while (true) {
    // A value is expected here.
    const first = load<u8>(at);
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (++depth > DEPTH_MAX) return fail(Problem.TOO_DEEP);
      opening = first;
      store<u8>(STACK + depth, opening);
      at = skipSpace(at + 1);
      if (load<u8>(at) !== opening + TO_CLOSING) {
        if (opening === OPEN_OBJECT) at = name(at);
        if (at === FAILED) return FAILED;
        continue;
      }
      at++;
      opening = load<u8>(STACK + --depth);
    } else {
      at = scalar(at, first);
      if (at === FAILED) return FAILED;
    }
    // A value has ended: closings, then a comma.
    while (true) {
      if (depth === 0) return at;
      at = skipSpace(at);
      const after = load<u8>(at);
      if (after === COMMA) break;
      if (after !== opening + TO_CLOSING)
        return fail(after === NEWLINE ? Problem.TOO_EARLY : Problem.NO_COMMA);
      at++;
      opening = load<u8>(STACK + --depth);
    }
    at = skipSpace(at + 1);
    if (opening === OPEN_OBJECT) at = name(at);
    if (at === FAILED) return FAILED;
  }
}

/** A member's name and colon; the position of its value. */
function name(at: usize): usize {
  if (load<u8>(at) !== QUOTE) return fail(Problem.NO_NAME);
  at = string(at + 1);
  if (at === FAILED) return FAILED;
  at = skipSpace(at);
  return load<u8>(at) === COLON ? skipSpace(at + 1) : fail(Problem.NO_COLON);
}

function scalar(at: usize, first: u8): usize {
  if (first === QUOTE) return string(at + 1);
  if (first === 0x2d || isDigit(first)) return number(at, first);
  // "true", "alse", "null", little endian.
  if (load<u32>(at) === 0x65757274 || load<u32>(at) === 0x6c6c756e) return at + 4;
  return first === 0x66 && load<u32>(at, 1) === 0x65736c61 ? at + 5 : fail(Problem.NO_VALUE);
}

/** The rest of a string whose quote has been read. */
function string(at: usize): usize {
  while (true) {
    const bytes = v128.load(at);
    const ends = v128.or(
      v128.or(i8x16.eq(bytes, i8x16.splat(QUOTE)), i8x16.eq(bytes, i8x16.splat(BACKSLASH))),
      i8x16.lt_u(bytes, i8x16.splat(0x20)),
    );
    const mask = i8x16.bitmask(ends);
    if (mask === 0) {
      at += 16;
      continue;
    }
    at += ctz(mask);
    if (load<u8>(at) === QUOTE) return at + 1;
    at = skipEscape(at);
    if (at === FAILED) return FAILED;
  }
}

/** What interrupts a string: an escape, or what may not be there. */
function skipEscape(at: usize): usize {
  const byte = load<u8>(at);
  if (byte !== BACKSLASH) return fail(byte === NEWLINE ? Problem.OPEN_STRING : Problem.CONTROL_CHARACTER);
  switch (load<u8>(at, 1)) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 2;
    case 0x75: // u
      for (let i = 2; i < 6; i++) if (!isHex(load<u8>(at + i))) return fail(Problem.UNICODE_ESCAPE);
      return at + 6;
    default:
      return fail(Problem.ESCAPE);
  }
}

function number(at: usize, first: u8): usize {
  const end = numberEnd(at, first);
  return end > at + NUMBER_MAX ? fail(Problem.LONG_NUMBER) : end;
}

function numberEnd(at: usize, first: u8): usize {
  if (first === 0x2d) at++;
  if (load<u8>(at) === 0x30) at++;
  else {
    if (!isDigit(load<u8>(at))) return fail(Problem.NO_VALUE);
    at = skipDigits(at);
  }
  if (load<u8>(at) === 0x2e) {
    if (!isDigit(load<u8>(at, 1))) return fail(Problem.NO_FRACTION);
    at = skipDigits(at + 1);
  }
  if ((load<u8>(at) | 0x20) !== 0x65) return at;
  at++;
  if (load<u8>(at) === 0x2b || load<u8>(at) === 0x2d) at++;
  return isDigit(load<u8>(at)) ? skipDigits(at) : fail(Problem.NO_EXPONENT);
}

/** From a digit on. */
function skipDigits(at: usize): usize {
  do at++;
  while (isDigit(load<u8>(at)));
  return at;
}

function isDigit(byte: u8): bool {
  return byte - 0x30 < 10;
}

function isHex(byte: u8): bool {
  return isDigit(byte) || (byte | 0x20) - 0x61 < 6;
}
