import { describe, expect, it } from "vitest";
import { PartSizes } from "../../../src/batch/output/part-sizes.ts";
import { PART_BYTES } from "../../../src/contracts/limits/outputs.ts";

describe("the size of parts", () => {
  it("ends a part with the batch that fills it", () => {
    const sizes = new PartSizes(5);
    expect(sizes.add(PART_BYTES - 1)).toBeUndefined();
    expect(sizes.add(1)).toEqual({ first: 5, next: 7, bytes: PART_BYTES });
    expect(sizes.add(3 * PART_BYTES)).toEqual({ first: 7, next: 8, bytes: 3 * PART_BYTES });
    expect(sizes.added).toBe(8);
  });

  it("leaves the rest to the last part", () => {
    const sizes = new PartSizes(0);
    expect(sizes.last()).toBeUndefined();
    sizes.add(10);
    sizes.add(0);
    expect(sizes.last()).toEqual({ first: 0, next: 2, bytes: 10 });
    expect(sizes.last()).toBeUndefined();
  });

  it("makes no part of batches that have no rows", () => {
    const sizes = new PartSizes(0);
    for (let batch = 0; batch < 100; batch++) expect(sizes.add(0)).toBeUndefined();
    expect(sizes.last()).toBeUndefined();
  });
});
