import { decode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  compactJson,
  elementSpans,
  jsonFault,
  memberSpans,
  parseExact,
  prettyJson,
  stringifyExact,
  stringifyWithRaw,
} from "../../src/base/json-text.ts";

import { encodeExact } from "../../src/control/answers/message-pack.ts";

describe("a text's fault as JSON", () => {
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

  it("is found where JSON.parse finds one, and nowhere else", () => {
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

  it("is a nesting deeper than is allowed", () => {
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

describe("JSON as text", () => {
  it("cuts members and elements out of any document, and compacts them", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.array(fc.jsonValue())),
        fc.constantFrom(0, 2),
        (value, indent) => {
          const text = Buffer.from(JSON.stringify(value, null, indent));
          const members = memberSpans(text, { start: 0, end: text.length });
          for (const [name, items] of Object.entries(value)) {
            const texts = [...elementSpans(text, members.get(name)!)].map((span) =>
              compactJson(text, span).toString(),
            );
            expect(texts).toEqual(items.map((item) => JSON.stringify(item)));
          }
        },
      ),
    );
  });

  it("lets the last of duplicate names win, as JSON.parse does", () => {
    const text = Buffer.from('{"a": 1, "\\u0061": 2}');
    const span = memberSpans(text, { start: 0, end: text.length }).get("a")!;
    expect(text.subarray(span.start, span.end).toString()).toBe("2");
  });

  it("reads and writes any document with its numbers as they were written", () => {
    const text =
      '{"a":[1.0,-0,1e999,12345678901234567890,"1.0",true,null,{}],"__proto__":{"b":[]},"c\\n":0.10}';
    expect(stringifyExact(parseExact(text))).toBe(text);
    expect(stringifyExact(parseExact(prettyJson(text)))).toBe(text);
    expect(stringifyExact(parseExact(" 1.50 "))).toBe("1.50");
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(prettyJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  it("is MessagePack with the same numbers", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        // This reader refuses the key; integers beyond 64 bits are texts.
        fc.pre(!text.includes("__proto__") && !/\d{19}/.test(text));
        expect(decode(encodeExact(parseExact(text)))).toEqual(JSON.parse(text));
      }),
    );
    const long = JSON.stringify(Array.from({ length: 70_000 }, (_, at) => at));
    expect(decode(encodeExact(parseExact(long)))).toEqual(JSON.parse(long));
    expect(encodeExact(parseExact("1.0"))).toEqual(Buffer.from("cb3ff0000000000000", "hex"));
    expect(encodeExact(parseExact("18446744073709551615"))).toEqual(Buffer.from("cfffffffffffffffff", "hex"));
    expect(encodeExact(parseExact("-9223372036854775808"))).toEqual(Buffer.from("d38000000000000000", "hex"));
    expect(decode(encodeExact(parseExact("18446744073709551616")))).toBe("18446744073709551616");
  });

  it("writes raw texts and big integers untouched", () => {
    expect(stringifyWithRaw({ a: 1, b: undefined }, { config: '{"n":9007199254740993}' })).toBe(
      '{"a":1,"config":{"n":9007199254740993}}',
    );
    expect(stringifyExact({ big: [12345678901234567890n] })).toBe('{"big":[12345678901234567890]}');
  });
});
