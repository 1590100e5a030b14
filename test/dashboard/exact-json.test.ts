import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExact, shown, shownJson } from "../../src/dashboard/server/exact-json.ts";

describe("JSON of the dashboard", () => {
  it.each([
    "12345678901234567890",
    "-9007199254740993",
    "0.1234567890123456789",
    "1e400",
    "123456789012345678901234567890.5E-3",
  ])("shows the number %s as the server wrote it", (digits) => {
    const value = parseExact(`{"a": [${digits}], "b": ${digits}}`);
    expect(shownJson(value, 0)).toBe(`{"a":[${digits}],"b":${digits}}`);
    expect(shown((value as { b: unknown }).b)).toBe(digits);
  });

  it("leaves texts alone, also those that look like numbers or have quotes in them", () => {
    const text = '{"a":"12345678901234567890","b":"say \\"12345678901234567890\\" \\\\","c":"\\\\"}';
    expect(shownJson(parseExact(text), 0)).toBe(text);
  });

  it("reads every other value as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = JSON.stringify(value);
        expect(shownJson(parseExact(text), 0)).toBe(text);
      }),
    );
  });
});
