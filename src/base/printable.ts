/**
 * Makes text from others safe for a terminal and for a line of a log. Characters that a terminal would obey instead of
 * show, or that it would not show, are replaced by their JSON escapes, so JSON stays the same JSON:
 * - control characters (C0 with ESC and carriage return, DEL, C1)
 * - format characters: those that change the direction of the text, and invisible ones, which make two names look alike
 *   or carry text that nobody sees
 * - separators that some programs treat as the end of a line
 *
 * The joiners U+200C and U+200D stay after letters and signs beyond ASCII: Persian and the scripts of India cannot be
 * written without them, and many emojis are several characters that they join. In ASCII they only hide: they are escaped.
 */
const UNSAFE_IN_A_LINE = /(?!(?<=[^\0-\x7f\p{Cc}\p{Cf}\p{Z}])[\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const UNSAFE = new RegExp(`(?![\\n\\t])${UNSAFE_IN_A_LINE.source}`, "gu");
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
  return SHORT[character] ?? character.split("").map(escapedUnit).join("");
}

/** JSON has escapes for the halves of a character beyond U+FFFF only. */
function escapedUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
