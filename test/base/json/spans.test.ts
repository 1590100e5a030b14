import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compactJson, elementSpans, memberSpans } from "../../../src/base/json/spans.ts";

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
});
