import { describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { isTooSlow } from "../../src/access/held-body.ts";

describe("the budget of bodies", () => {
  it("reserves the announced bytes, and keeps a part for small bodies", () => {
    const budget = new BodyBudget({ most: 100, forSmall: 20, smallBytes: 10 });
    expect([budget.reserve(50), budget.reserve(31), budget.reserve(30)]).toEqual([true, false, true]);
    expect([budget.reserve(10), budget.reserve(10), budget.reserve(1)]).toEqual([true, true, false]);
    budget.release(30);
    // A chunk of a large body is no small body.
    const answers = [
      budget.reserve(10, undefined, 10),
      budget.reserve(10, undefined, 11),
      budget.reserve(20),
    ];
    expect(answers).toEqual([true, false, false]);
  });

  const owner = (sender: string, api = "a") => ({ sender, api });

  it("leaves a third of it to other senders, and an eighth to other APIs", () => {
    const budget = new BodyBudget({ most: 120, forSmall: 20, smallBytes: 1 });
    const take = (sender: string, api = "a") => budget.reserve(10, owner(sender, api));
    expect(Array.from({ length: 8 }, () => take("greedy"))).toEqual([...Array(6).fill(true), false, false]);
    expect([take("second"), take("second"), take("second")]).toEqual([true, true, false]);
    // The API has 80 of the 100 by now.
    expect([take("third"), take("third", "b"), take("fourth", "b"), take("third", "b")]).toEqual([
      false,
      true,
      false,
      false,
    ]);
    budget.release(10, owner("greedy"));
    expect([take("third"), take("greedy")]).toEqual([false, false]);
  });

  it("accepts a first body of each sender and API if there is any room", () => {
    const budget = new BodyBudget({ most: 100, forSmall: 0, smallBytes: 1 });
    expect(budget.reserve(80, owner("x"))).toBe(true);
    expect([budget.reserve(20, owner("y", "b")), budget.reserve(1, owner("z", "c"))]).toEqual([true, false]);
    budget.release(80, owner("x"));
    budget.release(20, owner("y", "b"));
    expect(budget.reserve(100, owner("y"))).toBe(true);
  });

  it("accepts small bodies of a sender with large ones, and counts a growing body as large", () => {
    const budget = new BodyBudget({ most: 100, forSmall: 20, smallBytes: 4 });
    for (let i = 0; i < 5; i++) expect(budget.reserve(10, owner("x"))).toBe(true);
    expect(budget.reserve(10, owner("x"))).toBe(false);
    expect([budget.reserve(4, owner("x")), budget.reserve(4, owner("x"))]).toEqual([true, true]);
    // Nine at once would be too many as well.
    expect([budget.reserve(4, owner("x"), 4), budget.reserve(5, owner("x"), 9)]).toEqual([true, false]);
    for (let i = 0; i < 5; i++) budget.release(10, owner("x"));
    expect(budget.reserve(5, owner("x"), 9)).toBe(true);
    budget.release(9, owner("x"));
    budget.release(4, owner("x"));
    budget.release(4, owner("x"));
    expect([budget.reserve(80, owner("x")), budget.reserve(0, owner("x"))]).toEqual([true, true]);
  });

  it("does not count small bodies against their sender while all bodies fit into the part for small ones", () => {
    const budget = new BodyBudget({ most: 100, forSmall: 20, smallBytes: 10 });
    expect([budget.isPlenty(10), budget.isPlenty(11)]).toEqual([true, false]);
    budget.reserve(15);
    expect([budget.isPlenty(5), budget.isPlenty(6)]).toEqual([true, false]);
  });

  it("tells a stalled large body from one that will arrive in time", () => {
    const held = 100_000_000;
    // At the pace that takes all of the five minutes of a request.
    expect(isTooSlow((held * 15) / 300, held)).toBe(false);
    expect([isTooSlow(held / 41, held), isTooSlow(0, held), isTooSlow(0, 64 * 1024)]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
