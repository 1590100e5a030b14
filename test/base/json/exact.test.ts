import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExact, prettyJson, stringifyExact, stringifyWithRaw } from "../../../src/base/json/exact.ts";

describe("JSON with exact numbers", () => {
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

  it("writes raw texts and big integers untouched", () => {
    expect(stringifyWithRaw({ a: 1, b: undefined }, { config: '{"n":9007199254740993}' })).toBe(
      '{"a":1,"config":{"n":9007199254740993}}',
    );
    expect(stringifyExact({ big: [12345678901234567890n] })).toBe('{"big":[12345678901234567890]}');
  });
});
