import { describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";

describe("the budget of bodies", () => {
  it("is taken by announced bytes, with a part that large ones cannot have", () => {
    const budget = new BodyBudget({ most: 100, forSmall: 20, smallBytes: 10 });
    expect([budget.reserve(50), budget.reserve(31), budget.reserve(30)]).toEqual([true, false, true]);
    expect([budget.reserve(10), budget.reserve(10), budget.reserve(1)]).toEqual([true, true, false]);
    budget.release(30);
    // A chunk of a large body is no small body.
    expect([budget.reserve(10, 10), budget.reserve(10, 11), budget.reserve(20)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
