import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InOrder } from "../../../src/batch/output/in-order.ts";

describe("the settled batches, in order", () => {
  it("end before the first gap", () => {
    const inOrder = new InOrder(20);
    for (const batch of [1, 2, 3]) inOrder.add(batch);
    expect(inOrder.next).toBe(0);
    inOrder.add(0);
    expect(inOrder.next).toBe(4);
    expect(inOrder.has(3)).toBe(true);
    expect(inOrder.has(4)).toBe(false);
  });

  it("are complete with the last one, whatever the order", () => {
    const orders = fc
      .integer({ min: 1, max: 70 })
      .chain((total) => fc.shuffledSubarray([...Array(total).keys()], { minLength: total }));
    fc.assert(
      fc.property(orders, (order) => {
        const inOrder = new InOrder(order.length);
        const settled = new Set<number>();
        for (const batch of order) {
          expect(inOrder.isComplete).toBe(false);
          inOrder.add(batch);
          settled.add(batch);
          let gap = 0;
          while (settled.has(gap)) gap++;
          expect(inOrder.next).toBe(gap);
        }
        expect(inOrder.isComplete).toBe(true);
      }),
    );
  });

  it("of a job without batches are complete at once", () => {
    expect(new InOrder(0).isComplete).toBe(true);
  });
});
