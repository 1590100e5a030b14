import { describe, expect, it } from "vitest";
import {
  isAssignable,
  isOfType,
  parseValueType,
  typeText,
  type ValueType,
} from "../../../src/legacy/check/value-types.ts";

const type = (given: unknown) => parseValueType(given) as ValueType;

describe("value types", () => {
  it.each<[unknown, string]>([
    ["INT", "INT"],
    ["INT | FLOAT", "INT|FLOAT"],
    [["STRING"], "[STRING]"],
    [{ STRING: ["INT"] }, "{STRING: [INT]}"],
    [{ mean: "FLOAT", names: ["STRING"] }, "{mean: FLOAT, names: [STRING]}"],
  ])("%j is valid", (given, text) => {
    expect(typeText(type(given))).toBe(text);
  });

  it.each([["INTEGER"], [["INT", "FLOAT"]], [5], [null], [{ a: "NOPE" }], [""]])("%j is invalid", (given) => {
    expect(typeof parseValueType(given)).toBe("string");
  });

  it.each<[unknown, unknown, boolean]>([
    [1, "INT", true],
    [1.5, "INT", false],
    [1, "FLOAT", true],
    ["a", "INT|STRING", true],
    [true, "INT", false],
    [[1, 2], ["INT"], true],
    [[1, "2"], ["INT"], false],
    [{ a: 1 }, { STRING: "INT" }, true],
    [{ 3: 1 }, { INT: "INT" }, true],
    [{ a: 1 }, { INT: "INT" }, false],
    [{ mean: 1 }, { mean: "FLOAT" }, true],
    [{ mean: 1, more: 2 }, { mean: "FLOAT", other: "INT" }, false],
  ])("%j is a value of %j: %s", (value, given, expected) => {
    expect(isOfType(value, type(given))).toBe(expected);
  });

  it.each<[unknown, unknown, boolean]>([
    ["INT", "FLOAT", true],
    ["FLOAT", "INT", false],
    ["INT|FLOAT", "FLOAT", true],
    ["STRING", "INT|STRING", true],
    [["INT"], ["FLOAT"], true],
    [["INT"], "INT", false],
    [{ STRING: "INT" }, { STRING: "FLOAT" }, true],
    [{ a: "INT", b: "INT" }, { a: "INT" }, false],
  ])("%j is assignable to %j: %s", (given, wanted, expected) => {
    expect(isAssignable(type(given), type(wanted))).toBe(expected);
  });
});
