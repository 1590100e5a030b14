import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineScanner } from "../../../src/batch/enqueue/line-scanner.ts";
import { ITEM_DEPTH_MAX } from "../../../src/contracts/limits/submissions.ts";

const scanner = new LineScanner();

/** Each line of a text as the bytes of an object, "blank", or its error. Nothing after an error is read. */
function linesOf(text: string): (number | string)[] {
  const bytes = Buffer.from(text);
  const lines: (number | string)[] = [];
  scanner.load(bytes, bytes.length);
  for (let at = 0; at < bytes.length; ) {
    const count = scanner.scan(at);
    if (count === 0) return [...lines, scanner.problem];
    for (let i = 0; i < count; i++) {
      expect(scanner.lineEnd(i)).toBe(bytes.indexOf("\n", at) + 1 || bytes.length);
      at = scanner.lineEnd(i);
      lines.push(scanner.compactBytes(i) || "blank");
    }
  }
  return lines;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** A JSON object's text with a few characters inserted, replaced or removed. */
const mutated = fc
  .tuple(
    fc.json(),
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...'{}[]",:\\u0e+-.1 tfn\tx\u0001'.split(""))), {
      maxLength: 3,
    }),
  )
  .map(([json, edits]) => {
    let text = json.startsWith("{") ? json : `{"a":${json}}`;
    for (const [where, how, character] of edits) {
      const at = where % (text.length + 1);
      text = text.slice(0, at) + (how === 2 ? "" : character) + text.slice(how === 0 ? at : at + 1);
    }
    return text;
  });

describe("the line scanner", () => {
  it("agrees with JSON.parse on objects and on damaged objects", () => {
    fc.assert(
      fc.property(mutated, (text) => {
        fc.pre(!text.includes("\n") && text.trim() !== "" && isUtf8(Buffer.from(text)));
        expect(typeof linesOf(text)[0], text).toBe(isObject(text) ? "number" : "string");
      }),
      { numRuns: 20_000 },
    );
  });

  it("counts bytes without white space between tokens: the compact length", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, 4), (value, indent) => {
        const text = JSON.stringify(value, null, indent).replaceAll("\n", "\t");
        expect(linesOf(text)).toEqual([Buffer.byteLength(JSON.stringify(value))]);
      }),
      { numRuns: 2_000 },
    );
  });

  it("scans a block line by line, including blank lines, up to the first invalid line", () => {
    const text = '{"a":1}\r\n\n  \n{"b" : {}}\n{"c":[]}';
    expect(linesOf(text)).toEqual([7, "blank", "blank", 8, 8]);
    expect(linesOf(`${text}\nnot json\n{}`)).toEqual([7, "blank", "blank", 8, 8, "does not begin with {"]);
  });

  it("accepts blocks of any length, and more lines than its table holds", () => {
    const long = `{"a":"${"x".repeat(3_000_000)}"}`;
    expect(linesOf(`${long}\n{}\n`)).toEqual([long.length, 2]);
    expect(linesOf("{}\n".repeat(20_000))).toEqual(Array(20_000).fill(2));
    expect(linesOf("\n".repeat(20_000))).toEqual(Array(20_000).fill("blank"));
  });

  it("limits nesting as items do", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    expect(linesOf(nested(ITEM_DEPTH_MAX))).toEqual([nested(ITEM_DEPTH_MAX).length]);
    expect(linesOf(nested(ITEM_DEPTH_MAX + 1))).toEqual([`is nested deeper than ${ITEM_DEPTH_MAX}`]);
  });

  it.each([
    ["[1]", "does not begin with {"],
    ["{} {}", "has text after the object"],
    ['{"a":1', "ends too early"],
    ['{"a":1 2}', 'is not valid JSON: "," or a closing bracket was expected'],
    ['{"a":[1}', 'is not valid JSON: "," or a closing bracket was expected'],
    ['{"a":1,}', "is not valid JSON: a member's name in quotes was expected"],
    ["{a:1}", "is not valid JSON: a member's name in quotes was expected"],
    ['{"a"=1}', 'is not valid JSON: ":" was expected'],
    ['{"a":NaN}', "is not valid JSON: a value was expected"],
    ['{"a":-}', "is not valid JSON: a value was expected"],
    ['{"a":fals}', "is not valid JSON: a value was expected"],
    ['{"a":"b', "ends inside a string"],
    ['{"a":"b\tc"}', "has a control character inside a string"],
    ['{"a":"\\x"}', "has an unknown escape inside a string"],
    ['{"a":"\\u12g4"}', "has a bad \\u escape"],
    ['{"a":1.}', "has a number without digits after its point"],
    ['{"a":1e+}', "has a number without digits in its exponent"],
    [`{"a":${"9".repeat(4_301)}}`, "has a number of over 4300 characters"],
    [`{"a":-0.${"9".repeat(4_298)}}`, "has a number of over 4300 characters"],
  ])("reports the error in %s", (line, problem) => {
    expect(linesOf(line)).toEqual([problem]);
    expect(linesOf(`{}\n${line}\n{}`)).toEqual([2, problem]);
  });
});
