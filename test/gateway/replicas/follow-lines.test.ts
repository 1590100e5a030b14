/** Lines from pieces of text. */
import { expect, it } from "vitest";
import { LineCutter } from "../../../src/gateway/replicas/follow-lines.ts";

it("a line that arrives in many pieces is one line", () => {
  const lines = new LineCutter();
  const cut = ["a", "b", "c\nd\ne", "", "f\n", "\n"].map((text) => lines.cut(text));
  expect(cut).toEqual([[], [], ["abc", "d"], [], ["ef"], [""]]);
});
