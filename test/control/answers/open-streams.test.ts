/** How many streams and lists a key may have open. */
import { describe, expect, it } from "vitest";
import { LISTS, mayOpen } from "../../../src/control/answers/open-streams.ts";

describe("a key", () => {
  const most = { ofAKey: 10, ofAll: 40 };

  it.each([
    ["opens the first", 0, 0, true],
    ["opens as many as its limit", 9, 9, true],
    ["opens no more than its limit", 10, 10, false],
    ["opens the last place if it has none", 0, 39, true],
    ["opens none if all are taken", 0, 40, false],
    ["opens another one if half as many stay free", 7, 36, true],
    ["opens none if fewer stay free", 8, 36, false],
  ])("%s", (_, mine, all, may) => {
    expect(mayOpen(mine, all, most)).toBe(may);
  });

  it("finds a place, although five others take as many lists as they can", () => {
    let all = 0;
    for (let key = 0; key < 5; key++) for (let mine = 0; mayOpen(mine, all, LISTS); mine++) all++;
    expect(all).toBeLessThan(LISTS.ofAll);
    expect(mayOpen(0, all, LISTS)).toBe(true);
  });
});
