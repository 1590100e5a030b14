import { describe, expect, it } from "vitest";
import { FairQueue } from "../../../src/base/fair/fair-queue.ts";

describe("a fair queue", () => {
  const emptied = (queue: FairQueue<string>) => {
    const items: string[] = [];
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
    return items;
  };

  it("takes the senders in turn, and the requests of each sender in order", () => {
    const queue = new FairQueue<string>(10);
    for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.push(item[0]!, item);
    expect(emptied(queue)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  });

  it("lets a new sender wait for no second request of another one", () => {
    const queue = new FairQueue<string>(10);
    for (const item of ["a1", "a2", "a3"]) queue.push("a", item);
    expect(queue.shift()).toBe("a1");
    queue.push("b", "b1");
    expect(emptied(queue)).toEqual(["b1", "a2", "a3"]);
  });

  it("takes no more requests of a sender than its share", () => {
    const queue = new FairQueue<string>(2);
    expect(["a1", "a2", "a3"].map((item) => queue.push("a", item))).toEqual([true, true, false]);
    expect(queue.push("b", "b1")).toBe(true);
    expect(emptied(queue)).toEqual(["a1", "b1", "a2"]);
    expect(queue.push("a", "a4")).toBe(true);
  });

  it("forgets an item that is removed", () => {
    const queue = new FairQueue<string>(2);
    for (const item of ["a1", "a2", "b1"]) queue.push(item[0]!, item);
    for (const item of ["a1", "b1", "c1"]) queue.remove(item[0]!, item);
    expect(queue.push("a", "a3")).toBe(true);
    expect(emptied(queue)).toEqual(["a2", "a3"]);
  });
});
