/** Lines of a file of batches: the validator in WebAssembly accepts exactly what JSON.parse and Python accept. */
import { isUtf8 } from "node:buffer";
import { depthOf } from "../../../src/base/json/measure.ts";
import { LineScanner } from "../../../src/batch/enqueue/line-scanner.ts";
import { ITEM_DEPTH_MAX, NUMBER_CHARACTERS_MAX } from "../../../src/contracts/limits/submissions.ts";
import { Finding, type Target } from "../target.ts";

const scanner = new LineScanner();
const NEWLINE = 0x0a;
/** Digits, and all else that a number has. */
const LONG_NUMBER = new RegExp(`[-+.eE\\d]{${NUMBER_CHARACTERS_MAX + 1}}`);

/** The object of a line; undefined if JSON.parse does not read an object. */
function objectOf(line: Buffer): object | undefined {
  try {
    const value = JSON.parse(line.toString()) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The first line that is refused ends it. */
function scan(block: Buffer): { taken: Buffer[]; refused: Buffer | undefined } {
  const taken: Buffer[] = [];
  scanner.load(block, block.length);
  for (let at = 0; at < block.length; ) {
    const count = scanner.scan(at);
    const end = block.indexOf(NEWLINE, at);
    if (count === 0) return { taken, refused: block.subarray(at, end < 0 ? block.length : end) };
    for (let i = 0; i < count; i++) {
      const line = block.subarray(at, scanner.lineEnd(i));
      at = scanner.lineEnd(i);
      if (scanner.compactBytes(i) > 0) taken.push(line);
    }
  }
  return { taken, refused: undefined };
}

export const jsonLines: Target = {
  dictionary: [
    ...[
      '{"a":1}\n',
      '{"a":[1,2.5,"x"]}\n',
      "\n",
      " ",
      "\t",
      "\r",
      '"',
      "\\",
      "\\u00e9",
      "\\ud800",
      "\\n",
      "\\/",
      "null",
      "true",
      "false",
      "-0",
      "1e5",
    ],
    ...[
      "1.",
      ".5",
      "01",
      "-",
      "+1",
      "NaN",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '""',
      "{}\n",
      "\u0000",
      "\u001f",
      "\u007f",
      "\ufeff",
      "é",
      "\xff",
      '"__proto__":1',
    ],
  ],
  maxBytes: 64 * 1024,
  covers: /\/src\/(batch|base)\//,
  run(input) {
    const { taken, refused } = scan(input);
    const texts = taken.filter((line) => isUtf8(line));
    for (const line of texts)
      if (objectOf(line) === undefined)
        throw new Finding(`a line is taken that is no object: ${line.toString().slice(0, 200)}`);
    if (refused !== undefined && isUtf8(refused)) {
      const isObject = objectOf(refused) !== undefined;
      const isLong = LONG_NUMBER.test(refused.toString("latin1"));
      if (isObject && !isLong && depthOf(refused, { start: 0, end: refused.length }) <= ITEM_DEPTH_MAX)
        throw new Finding(`an object is refused (${scanner.problem}): ${refused.toString().slice(0, 200)}`);
    }
    return { claim: { lines: texts.map(String) } };
  },
};
