/** Values are counted as JSON.parse would make them, wherever the text is cut. */
import { expect, it } from "vitest";
import { ValueCount } from "../../../src/base/json/measure.ts";

/** Objects, arrays and commas outside of strings. */
const TEXT = '{"a,[":[1,{"\\"{\\\\":"x\\\\\\""},[]],"b":"\\u007b,"}';
const VALUES = 4 + 3;

const isOver = (most: number, pieces: string[]) => {
  const count = new ValueCount(most);
  return pieces.map((piece) => count.isOverIn(Buffer.from(piece))).some(Boolean);
};

it("counts the values of a text", () => {
  expect(() => JSON.parse(TEXT)).not.toThrow();
  expect(isOver(VALUES, [TEXT])).toBe(false);
  expect(isOver(VALUES - 1, [TEXT])).toBe(true);
});

it("counts them wherever the text is cut, also within an escape", () => {
  for (let at = 0; at <= TEXT.length; at++) {
    const pieces = [TEXT.slice(0, at), TEXT.slice(at)];
    expect(isOver(VALUES, pieces), String(at)).toBe(false);
    expect(isOver(VALUES - 1, pieces), String(at)).toBe(true);
  }
});

it("takes any bytes", () => {
  expect(isOver(3, ['"'.repeat(5), "{{{{"])).toBe(false);
  expect(isOver(3, ["{", "{[,"])).toBe(true);
});
