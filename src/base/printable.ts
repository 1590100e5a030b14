/**
 * Makes text from others safe for a terminal and for a line of a log. Characters that a terminal would obey instead of
 * show are replaced by their JSON escapes, so JSON stays the same JSON:
 * - control characters (C0 with ESC and carriage return, DEL, C1)
 * - characters that change the direction of the text
 * - separators that some programs treat as the end of a line
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu;
const UNSAFE_IN_A_LINE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu;
const QUOTED_MAX = 100;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Keeps line ends and tabs. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/** The same for one line: line ends and tabs are escaped too. */
export function printableLine(text: string): string {
  return text.replace(UNSAFE_IN_A_LINE, escaped);
}

/** In quotes, for an error message: no more than the beginning of what was sent. */
export function quotedBeginning(text: string): string {
  return `"${text.length <= QUOTED_MAX ? text : `${text.slice(0, QUOTED_MAX)}...`}"`;
}

function escaped(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
