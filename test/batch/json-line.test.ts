import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineScanner } from "../../src/batch/json-line.ts";

const scanner = new LineScanner();

function kindOf(text: string): string {
  const bytes = Buffer.from(text);
  scanner.scan(bytes, 0, bytes.length);
  return scanner.kind;
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
  it("agrees with JSON.parse on objects and on damaged ones", () => {
    fc.assert(
      fc.property(mutated, (text) => {
        fc.pre(!text.includes("\n") && text.trim() !== "" && isUtf8(Buffer.from(text)));
        expect(kindOf(text), text).toBe(isObject(text) ? "object" : "invalid");
      }),
      { numRuns: 20_000 },
    );
  });

  it("counts white space between tokens, so that the rest is the compact length", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, 4), (value, indent) => {
        const text = JSON.stringify(value, null, indent).replaceAll("\n", "\t");
        expect(kindOf(text)).toBe("object");
        expect(Buffer.byteLength(text) - scanner.spaces).toBe(Buffer.byteLength(JSON.stringify(value)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("walks a block line by line, blank ones included", () => {
    const block = Buffer.from('{"a":1}\r\n\n  \n{"b":{}}\nnot json\n{"c":[]}');
    const kinds: string[] = [];
    for (let at = 0; at < block.length; at = scanner.next) {
      scanner.scan(block, at, block.length);
      kinds.push(scanner.kind);
    }
    expect(kinds).toEqual(["object", "blank", "blank", "object", "invalid", "object"]);
  });

  it("caps nesting at 1,023", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    expect(kindOf(nested(1023))).toBe("object");
    expect(kindOf(nested(1024))).toBe("invalid");
    expect(scanner.problem).toContain("1023");
  });
});
