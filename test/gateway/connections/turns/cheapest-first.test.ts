/** Whose connections are read first, by what they have cost. */
import { beforeEach, describe, expect, it } from "vitest";
import { READING_COST_HALF_MS, READING_COSTS_MAX } from "../../../../src/contracts/limits/requests.ts";
import { CheapestFirst } from "../../../../src/gateway/connections/turns/cheapest-first.ts";
import { OwnerCosts } from "../../../../src/gateway/connections/turns/owner-costs.ts";

describe("what waits", () => {
  let costs: OwnerCosts;
  let waiting: CheapestFirst<string>;
  beforeEach(() => {
    costs = new OwnerCosts();
    waiting = new CheapestFirst(costs);
  });
  const push = (owner: string, count = 1) => {
    for (let each = 0; each < count; each++) waiting.push(owner, `${owner}${each}`);
  };
  const all = () => {
    const items: string[] = [];
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) items.push(item);
    return items;
  };

  it("of owners that cost nothing alternates, in the order of each", () => {
    push("a", 3);
    push("b", 2);
    expect(all()).toEqual(["a0", "b0", "a1", "b1", "a2"]);
    expect(waiting.shift()).toBeUndefined();
  });

  it("of owners that cost less is before what others have, however long that waits", () => {
    costs.add("a", 20, 0);
    costs.add("b", 10, 0);
    push("a", 2);
    push("b", 2);
    push("new");
    expect(all()).toEqual(["new0", "b0", "b1", "a0", "a1"]);
  });

  it("moves behind others when its owner costs more meanwhile", () => {
    costs.add("b", 10, 0);
    push("a", 2);
    push("b");
    expect(waiting.shift()).toBe("a0");
    costs.add("a", 20, 0);
    expect(all()).toEqual(["b0", "a1"]);
  });

  it("is behind hundreds of clients for as long as it takes to read each of them once", () => {
    for (let attacker = 0; attacker < 300; attacker++) push(`attacker${attacker}-`, 10);
    for (let each = 0; each < 300; each++) costs.add(waiting.shift()!.replace(/-.*/, "-"), 25, 0);
    push("client", 5);
    expect(Array.from({ length: 5 }, () => waiting.shift())).toEqual(
      [0, 1, 2, 3, 4].map((n) => `client${n}`),
    );
  });
});

describe("a cost", () => {
  it("adds up, and half of it is forgotten after a while", () => {
    const costs = new OwnerCosts();
    costs.add("a", 10, 0);
    costs.add("a", 10, 0);
    costs.add("b", 11, READING_COST_HALF_MS);
    expect(costs.of("a")).toBeLessThan(costs.of("b"));
    costs.add("c", 9, READING_COST_HALF_MS);
    expect(costs.of("a")).toBeGreaterThan(costs.of("c"));
    costs.add("c", 0, READING_COST_HALF_MS);
    expect(costs.of("nobody")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("is a number after years, too", () => {
    const costs = new OwnerCosts();
    const years = 20 * 365 * 24 * 3600 * 1000;
    costs.add("a", 10, years);
    costs.add("a", 1, years + 1_000);
    costs.add("b", 12, years + 1_000);
    expect(costs.of("a")).toBeLessThan(costs.of("b"));
    expect(Number.isFinite(costs.of("b"))).toBe(true);
  });

  it("of too many owners is forgotten: first those of long ago", () => {
    const costs = new OwnerCosts();
    const laterMs = 100 * READING_COST_HALF_MS;
    costs.add("old", 100, 0);
    costs.add("young", 100, laterMs);
    for (let each = 2; each <= READING_COSTS_MAX; each++) costs.add(`${each}`, 1_000, laterMs);
    expect([costs.of("old"), costs.of("young")]).toEqual([Number.NEGATIVE_INFINITY, expect.any(Number)]);
    expect(costs.of("young")).toBeGreaterThan(0);
    for (let each = 0; each < READING_COSTS_MAX; each++) costs.add(`more${each}`, 1_000, laterMs);
    expect(costs.of("young")).toBe(Number.NEGATIVE_INFINITY);
  });
});
