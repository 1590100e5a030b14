/** Which entries a map of bounded size keeps. */
import { expect, it } from "vitest";
import { Recent } from "../../../src/batch/letters/recent.ts";

it("the entry that was least recently read or written is dropped", () => {
  const recent = new Recent<number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.get("a");
  recent.set("c", 3);
  expect(["a", "b", "c"].map((key) => recent.get(key))).toEqual([1, undefined, 3]);
  recent.set("a", 4);
  recent.set("d", 5);
  expect(["a", "c", "d"].map((key) => recent.get(key))).toEqual([4, undefined, 5]);
  expect(recent.size).toBe(2);
});
