/** How deep a YAML document is nested, found without following it to its end. */
import { isCollection, isPair, type Node } from "yaml";

/** Where lists and maps are in one another deeper than `most`: an offset in the text; undefined where they are not. */
export function tooDeepAt(node: unknown, most: number): number | undefined {
  if (isPair(node)) return tooDeepAt(node.key, most) ?? tooDeepAt(node.value, most);
  if (!isCollection(node)) return undefined;
  if (most === 0) return (node as Node).range?.[0] ?? 0;
  for (const item of node.items) {
    const found = tooDeepAt(item, most - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the parser says of a text that is deeper than its own stack. */
export function isStackOverflow(message: string): boolean {
  return message.includes("call stack");
}
