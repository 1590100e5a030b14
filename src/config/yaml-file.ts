/** One YAML text with the place of everything in it: values, exact integers, and `file:line:column` of any path. */
import { type Document, isMap, LineCounter, type Node, parseDocument } from "yaml";
import type { FieldError } from "../contracts/errors.ts";

export type YamlPath = readonly (string | number)[];

export interface YamlFile {
  value: unknown;
  /** The same with integers as bigints, so that none loses a digit. */
  exact: unknown;
  /** `file:line:column` of a key or value; of the nearest thing around it where it is missing. */
  positionOf: (path: YamlPath) => string;
}

/** The errors of a text that is no YAML, each with its place. */
export function readYamlFile(text: string, file: string): YamlFile | FieldError[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    return document.errors.map((error) => ({
      pointer: at(error.pos[0]),
      detail: error.message.split(" at line ")[0]!,
    }));
  }
  return {
    value: document.toJS(),
    // Read once more, by those who need it only.
    get exact() {
      return parseDocument(text, { intAsBigInt: true }).toJS();
    },
    positionOf: (path) => at(offsetOf(document, path)),
  };
}

function offsetOf(document: Document, path: YamlPath): number {
  for (let length = path.length; length > 0; length--) {
    const parent = document.getIn(path.slice(0, length - 1), true);
    const name = path[length - 1];
    if (isMap(parent)) {
      const pair = parent.items.find(
        (item) => String((item.key as { value?: unknown }).value) === String(name),
      );
      if (pair !== undefined) return (pair.key as Node).range![0];
    }
    const node = document.getIn(path.slice(0, length), true) as Node | undefined;
    if (node?.range) return node.range[0];
  }
  return 0;
}
