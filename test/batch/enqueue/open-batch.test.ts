/** What is too much for one batch. */
import { describe, expect, it } from "vitest";
import { SegmentMaker } from "../../../src/batch/enqueue/make-segments.ts";
import { OpenBatch } from "../../../src/batch/enqueue/open-batch.ts";
import { BATCH_FILES_BYTES_MAX } from "../../../src/contracts/limits/jobs.ts";
import { BATCH_BYTES_LIMIT, BATCH_LINES_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";

describe("a batch", () => {
  it("must be smaller than the limit as a JSON array", () => {
    const batch = new OpenBatch();
    batch.item(BATCH_BYTES_LIMIT - 3, 1);
    expect([batch.compactBytes, batch.excess]).toEqual([BATCH_BYTES_LIMIT - 1, undefined]);
    batch.begin();
    batch.item(BATCH_BYTES_LIMIT - 2, 1);
    expect(batch.excess).toMatchObject({ problem: expect.stringContaining("must be smaller than 262144") });
  });

  it("has so many bytes of lines", () => {
    const batch = new OpenBatch();
    batch.item(2, BATCH_LINES_BYTES_MAX);
    expect(batch.excess).toBeUndefined();
    batch.item(2, 1);
    expect(batch.excess).toMatchObject({ problem: expect.stringContaining("2097153 bytes with their") });
    batch.begin();
    expect(batch.excess).toBeUndefined();
  });

  it("has lines of so many files", () => {
    const batch = new OpenBatch();
    batch.file(BATCH_FILES_BYTES_MAX);
    expect(batch.excess).toBeUndefined();
    batch.file(1);
    expect(batch.excess).toMatchObject({ problem: expect.stringContaining("more than 2 files") });
    batch.begin();
    expect(batch.excess).toBeUndefined();
  });
});

it("a segment has no piece of a file that gives it no line", () => {
  const maker = new SegmentMaker(2, 0);
  for (const path of ["a", "b", "c"]) {
    maker.beginFile(path, "", 0, { before: 0 });
    maker.blankLine(1);
    if (path === "b") maker.item(4, 2);
    maker.endFile();
  }
  const lines = { before: 0, items: 1 };
  expect(maker.finish()).toMatchObject({
    ranges: [{ path: "b", start: 0, end: 4, lines }],
    has_blank_lines: true,
  });
});
