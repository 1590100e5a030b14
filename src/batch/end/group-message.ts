/** Finds what messages of one group of errors have in common: they differ in numbers only. Pure. */

const LENGTH_MAX = 200;

/**
 * `messages`: some of the group, at least one. One stays as it is. Of several, the first lines are compared, and `…`
 * stands for each number that differs between them.
 */
export function commonMessage(messages: readonly string[]): string {
  const [first = ""] = messages;
  if (messages.every((message) => message === first)) return first;
  const lines = messages.map((message) => message.split("\n", 1)[0]!);
  const text = sameTexts(lines) ? withoutNumbers(lines) : commonBeginning(lines);
  return text.length <= LENGTH_MAX ? text : `${beginning(text, LENGTH_MAX - 1)}…`;
}

/** Texts at even places, numbers at odd ones. */
function partsOf(line: string): string[] {
  return line.split(/(\d+(?:\.\d+)?)/);
}

function sameTexts(lines: readonly string[]): boolean {
  const texts = lines.map((line) => JSON.stringify(partsOf(line).filter((_, at) => at % 2 === 0)));
  return texts.every((text) => text === texts[0]);
}

function withoutNumbers(lines: readonly string[]): string {
  const [first = [], ...others] = lines.map(partsOf);
  return first.map((part, at) => (others.every((other) => other[at] === part) ? part : "…")).join("");
}

/** Messages that are long may also differ in the end. */
function commonBeginning(lines: readonly string[]): string {
  const [first = ""] = lines;
  let same = 0;
  while (same < first.length && lines.every((line) => line[same] === first[same])) same++;
  return `${beginning(first, same)}…`;
}

/** At most so many code units. A character that takes two of them is not split. */
function beginning(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}
