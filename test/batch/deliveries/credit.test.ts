/** How many batches one worker may have at a time. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Credit } from "../../../src/batch/deliveries/credit.ts";
import { CREDIT_BATCHES_MAX, LEASED_WORK_US } from "../../../src/contracts/limits/jobs.ts";

type Ack = [count: number, totalUs: number];

function creditAfter(...acks: Ack[]): number[] {
  const credit = new Credit();
  return acks.map(([count, totalUs]) => {
    credit.learn(count, totalUs);
    return credit.batches;
  });
}

const slow = LEASED_WORK_US;

describe("a worker's credit", () => {
  it("is one batch at first", () => {
    expect(new Credit().batches).toBe(1);
  });

  it.each<[string, Ack[], number[]]>([
    ["is the number of batches that take 50 ms", [[1, slow / 4]], [4]],
    ["is measured for each batch, not for each acknowledgement", [[4, slow]], [4]],
    ["is rounded down", [[1, slow / 4 + 1]], [3]],
    ["is one batch if that takes longer", [[1, 3 * slow]], [1]],
    ["grows to at most eight times in one step", [[1, slow / 100]], [8]],
    [
      "grows step by step",
      [
        [1, slow / 100],
        [8, 8 * (slow / 100)],
        [64, 64 * (slow / 100)],
      ],
      [8, 64, 100],
    ],
    [
      "shrinks at once",
      [
        [1, slow / 8],
        [1, 4 * slow],
      ],
      [8, 1],
    ],
    [
      "gives the newest acknowledgement as much weight as all earlier ones",
      [
        [1, slow / 2],
        [1, slow / 4],
        [2, slow],
      ],
      // The mean time of a batch is 1/2, then 3/8, then 7/16 of 50 ms.
      [2, 2, 2],
    ],
    [
      "remembers slow batches for a while",
      [
        [1, slow],
        [1, slow / 8],
      ],
      [1, 1],
    ],
    [
      "ignores an acknowledgement of no batch",
      [
        [1, slow / 4],
        [0, slow],
      ],
      [4, 4],
    ],
    [
      "has a maximum, even for batches that take no time",
      [
        [1, 0],
        [1, 0],
        [1, 0],
        [1, 0],
      ],
      [8, 64, 512, CREDIT_BATCHES_MAX],
    ],
  ])("%s", (_, acks, expected) => {
    expect(creditAfter(...acks)).toEqual(expected);
  });

  it("counts every batch as at least a microsecond", () => {
    const acks = Array.from({ length: 5 }, (): Ack => [CREDIT_BATCHES_MAX, 1]);
    expect(creditAfter(...acks).at(-1)).toBe(Math.min(CREDIT_BATCHES_MAX, LEASED_WORK_US));
  });

  it("stays between one batch and the maximum, and fills 50 ms if all batches take the same time", () => {
    const ack = fc.tuple(fc.nat(CREDIT_BATCHES_MAX), fc.nat(10 * LEASED_WORK_US));
    fc.assert(
      fc.property(
        fc.array(ack, { maxLength: 20 }),
        fc.integer({ min: 1, max: LEASED_WORK_US }),
        (acks, us) => {
          for (const batches of creditAfter(...acks)) {
            expect(batches).toBeGreaterThanOrEqual(1);
            expect(batches).toBeLessThanOrEqual(CREDIT_BATCHES_MAX);
            expect(Number.isInteger(batches)).toBe(true);
          }
          // A worker whose batches all take the same time gets as many as fill 50 ms.
          const steady = creditAfter(...Array.from({ length: 6 }, (): Ack => [1, us])).at(-1);
          expect(steady).toBe(Math.min(CREDIT_BATCHES_MAX, Math.max(1, Math.floor(LEASED_WORK_US / us))));
        },
      ),
    );
  });
});
