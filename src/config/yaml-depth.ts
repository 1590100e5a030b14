/** Finds whether a YAML document is nested too deep, without following it to its end. */
import { isCollection, isPair, type Node } from "yaml";

/** The offset in the text where lists and maps are nested deeper than `most`; undefined if they are not. */
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

/** Whether this is the parser's message for a text that is nested deeper than its stack. */
export function isStackOverflow(message: string): boolean {
  return message.includes("call stack");
}
