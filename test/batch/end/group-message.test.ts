import { describe, expect, it } from "vitest";
import { commonMessage } from "../../../src/batch/end/group-message.ts";

describe("what the messages of a group have in common", () => {
  it.each([
    ["one message", ["image 4 cannot be read\nat line 3"], "image 4 cannot be read\nat line 3"],
    ["messages that are the same", ["no field x", "no field x"], "no field x"],
    [
      "a number that differs",
      ["image 4 cannot be read", "image 13.5 cannot be read"],
      "image … cannot be read",
    ],
    [
      "a number that does not differ",
      ["HTTP 503 for image 4", "HTTP 503 for image 5", "HTTP 503 for image 6"],
      "HTTP 503 for image …",
    ],
    ["messages of several lines", ["row 1\ndetails 1", "row 2\ndetails 2"], "row …"],
    ["first lines that are the same", ["no row\n1", "no row\n2"], "no row"],
    ["a number at the end", ["17", "18"], "…"],
    ["messages that differ in their ends", ["image 4: broken header", "image 4: broken"], "image 4: broken…"],
    ["characters of two code units", ["🙂🙂 no x", "🙂🙂 no field"], "🙂🙂 no …"],
    ["such a character that differs in its second half", ["bad 🙂", "bad 🙃"], "bad …"],
    ["no message", ["", ""], ""],
  ])("of %s", (_, messages, common) => {
    expect(commonMessage(messages)).toBe(common);
  });

  it("is short", () => {
    const long = (number: number) => `row ${number} ${"x".repeat(300)}`;
    const common = commonMessage([long(1), long(2)]);
    expect([common.length, common.slice(0, 8), common.at(-1)]).toEqual([200, "row … xx", "…"]);
  });

  it("is not cut inside a character", () => {
    const common = commonMessage([1, 2].map((number) => `${number}${"🙂".repeat(150)}`));
    expect(common).toBe(`…${"🙂".repeat(99)}…`);
    expect(commonMessage([1, 2].map((number) => `${number}x${"🙂".repeat(150)}`))).toBe(
      `…x${"🙂".repeat(98)}…`,
    );
  });
});
