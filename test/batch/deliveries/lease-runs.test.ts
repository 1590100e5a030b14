/** Which batches of a lease share a frame. */
import { describe, expect, it } from "vitest";
import { type LeasedBatch, type LeaseEntries, runLength } from "../../../src/batch/deliveries/lease-runs.ts";

const FRAME_BYTES = 64 * 1024;

/** A segment whose batches have these sizes; all have `otherwise` bytes if theirs is not given. */
const segmentOf = (bytes: Record<number, number>, otherwise = 10): LeaseEntries => ({
  entryBytes: (index) => bytes[index] ?? otherwise,
  entries: () => {
    throw new Error("the entries themselves are not needed");
  },
});
const SEGMENT = segmentOf({});
const OTHER = segmentOf({});
const batches = (segment: LeaseEntries, ...indexes: number[]): LeasedBatch[] =>
  indexes.map((index) => ({ index, segment }));

describe("one frame", () => {
  it.each<[string, LeasedBatch[], number, number]>([
    ["carries all batches that are adjacent", batches(SEGMENT, 3, 4, 5), 0, 3],
    ["starts at the batch that is asked for", batches(SEGMENT, 3, 4, 5), 1, 2],
    ["carries the last batch alone", batches(SEGMENT, 3, 4, 5), 2, 1],
    ["ends before a gap", batches(SEGMENT, 3, 4, 6, 7), 0, 2],
    ["starts again after a gap", batches(SEGMENT, 3, 4, 6, 7), 2, 2],
    ["ends before a batch that is leased again", batches(SEGMENT, 3, 3, 4), 0, 1],
    [
      "ends before another segment, even if the numbers are adjacent",
      [...batches(SEGMENT, 3, 4), ...batches(OTHER, 5, 6)],
      0,
      2,
    ],
    [
      "is filled to its last byte",
      batches(segmentOf({ 0: FRAME_BYTES - 20, 1: 10, 2: 10, 3: 1 }), 0, 1, 2, 3),
      0,
      3,
    ],
    [
      "ends before the batch that is one byte too large",
      batches(segmentOf({ 0: FRAME_BYTES - 20, 1: 10, 2: 11 }), 0, 1, 2),
      0,
      2,
    ],
    ["counts the bytes of its first batch", batches(segmentOf({ 0: 0, 1: FRAME_BYTES, 2: 1 }), 1, 2), 0, 1],
    [
      "carries a batch that is larger than a frame alone",
      batches(segmentOf({}, 2 * FRAME_BYTES), 0, 1),
      0,
      1,
    ],
  ])("%s", (_, leased, from, expected) => {
    expect(runLength(leased, from)).toBe(expected);
  });
});
