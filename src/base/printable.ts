/**
 * Text that others wrote, made safe for a terminal and for a line of a log. What a terminal would obey instead of show is
 * replaced by its JSON escape: control characters (C0 with ESC and carriage return, DEL, C1), characters that turn the
 * direction of the text around, and separators that some programs take for the end of a line. JSON stays the same JSON.
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu;
const UNSAFE_IN_A_LINE = /[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Keeps the ends of lines, and tabs. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/** The same in one line: the ends of lines, and tabs, are escaped too. */
export function printableLine(text: string): string {
  return text.replace(UNSAFE_IN_A_LINE, escaped);
}

function escaped(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
