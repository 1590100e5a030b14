/** Names that every JavaScript object has are names like any other. */
import { describe, expect, it } from "vitest";
import { inputFaults } from "../../src/legacy/check/check-inputs.ts";
import { fillTemplate } from "../../src/legacy/check/templates.ts";
import { isOfType, parseValueType } from "../../src/legacy/check/value-types.ts";

describe("a name such as constructor", () => {
  it("is missing if it was not given", () => {
    expect(fillTemplate("t", "{constructor}", {})).toEqual({
      faults: ['template "t" requires an arg named "constructor"'],
    });
    const wanted = { columns: { constructor: "INT_COLUMN" }, args: { constructor: "INT" }, output: "INT" };
    const names = { rawColumns: new Map(), transformedColumns: new Set<string>(), args: new Map() };
    const faults = inputFaults({ columns: {}, args: {} }, wanted as never, names);
    expect(faults.map(({ detail }) => detail)).toEqual([
      '"constructor" is required, and missing',
      '"constructor" is required, and missing',
    ]);
  });

  it("can be a field of a type", () => {
    const type = parseValueType(JSON.parse('{"__proto__": "INT", "constructor": "STRING"}'));
    if (typeof type === "string") throw new Error(type);
    expect(isOfType(JSON.parse('{"__proto__": 1, "constructor": "a"}'), type)).toBe(true);
    expect(isOfType({ constructor: "a" }, type)).toBe(false);
    expect(isOfType({ a: 1, b: 2 }, type)).toBe(false);
  });
});
