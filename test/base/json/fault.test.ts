import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonFault } from "../../../src/base/json/fault.ts";

describe("a JSON syntax error", () => {
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    '"a"',
    '"\\n"',
    '"\\u00e9"',
    '"\\x"',
    '"\t"',
    '"é"',
  ];
  const words = [
    "1",
    "-0",
    "01",
    "1.5",
    "1e5",
    "1.",
    "-",
    ".5",
    "0.1e-3",
    "true",
    "false",
    "null",
    "tru",
    "\ufeff",
  ];
  const isJson = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  const agree = (text: string) => {
    expect(
      jsonFault(Buffer.from(text), { depth: 100, numberCharacters: 100 }) === undefined,
      JSON.stringify(text),
    ).toBe(isJson(text));
  };

  it("is found at the position that JSON.parse reports, and nowhere else", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces, ...words), { maxLength: 12 }), (parts) =>
        agree(parts.join("")),
      ),
      { numRuns: 2_000 },
    );
    const broken = fc.tuple(fc.json(), fc.nat(), fc.constantFrom(...pieces, ...words), fc.boolean());
    fc.assert(
      fc.property(broken, ([text, at, piece, isReplaced]) => {
        const from = at % (text.length + 1);
        agree(text);
        agree(text.slice(0, from) + piece + text.slice(from + (isReplaced ? 1 : 0)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("is also reported for nesting that is too deep", () => {
    const limits = { depth: 2, numberCharacters: 5 };
    expect(jsonFault(Buffer.from("[[12345]]"), limits)).toBeUndefined();
    expect(jsonFault(Buffer.from("[[[1]]]"), limits)).toEqual({ at: 2, why: "nested deeper than 2" });
    for (const long of ["123456", "-12345", "1.2345", "12e+34"])
      expect(jsonFault(Buffer.from(`["123456", ${long}]`), limits)).toEqual({
        at: 11,
        why: "a number of over 5 characters",
      });
  });
});
