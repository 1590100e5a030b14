/**
 * JSON whose numbers stay as the server wrote them: JavaScript's own numbers lose digits over 2^53. Such a number becomes
 * a text behind a mark, which `shown` removes.
 */

/** A private character (Unicode, section 23.5), which no sensible text begins with. */
const MARK = "\uf8ffnumber:";
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Reads JSON. Throws a SyntaxError. */
export function parseExact(text: string): unknown {
  return JSON.parse(
    text.replace(TEXT_OR_NUMBER, (token) => (isInexact(token) ? `"${MARK}${token}"` : token)),
  );
}

function isInexact(token: string): boolean {
  return !token.startsWith('"') && String(Number(token)) !== token;
}

/** A value as JSON with indentation, and its numbers as the server wrote them. */
export function shownJson(value: unknown, indent = 2): string {
  return (JSON.stringify(value, null, indent) ?? "null").replace(
    new RegExp(`"${MARK}([^"]*)"`, "g"),
    (_, digits: string) => digits,
  );
}

/** A single value of a table: texts without quotes, all else as JSON. */
export function shown(value: unknown): string {
  if (typeof value !== "string") return shownJson(value, 0);
  return value.startsWith(MARK) ? value.slice(MARK.length) : value;
}
