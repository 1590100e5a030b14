/** Ids by content. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentId } from "../../../src/legacy/check/content-id.ts";

/** The same value with the keys of all its objects in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, each]) => [key, reversed(each)] as const);
  return Object.fromEntries(entries.reverse());
}

describe("a content id", () => {
  it("is the SHA-256 of the content as compact JSON with sorted keys", () => {
    // Ids survive releases: resources with a changed id would be computed again.
    const text = '["a",{"b":1,"c":[true,null]}]';
    const expected = createHash("sha256").update(text).digest("hex");
    expect(contentId("a", { c: [true, null], b: 1 })).toBe(expected);
  });

  it("depends on the content only, not on the order of keys", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(contentId(a)).toBe(contentId(reversed(a)));
        const read = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
        expect(contentId(a) === contentId(b)).toBe(isDeepStrictEqual(read(a), read(b)));
      }),
    );
  });

  it.each<[string, unknown[], unknown[], boolean]>([
    ["an undefined key is no key", [{ a: undefined, b: 1 }], [{ b: 1 }], true],
    ["null is a value", [{ a: null }], [{}], false],
    ["an absent part is null", [undefined], [null], true],
    ["numbers are not text", [1], ["1"], false],
    ["a list differs from its only element", [["a"]], ["a"], false],
    ["parts are not concatenated", ["a", "b"], ["a,b"], false],
    ["the order of parts counts", ["a", "b"], ["b", "a"], false],
    ["the order of a list counts", [["a", "b"]], [["b", "a"]], false],
    ["keys are not values", [{ a: "b" }], [{ b: "a" }], false],
  ])("follows the rule: %s", (_, a, b, isSame) => {
    expect(contentId(...a) === contentId(...b)).toBe(isSame);
  });
});
