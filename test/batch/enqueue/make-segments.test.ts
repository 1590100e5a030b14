/** Lines into batches into segments. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type NewSegment, SegmentMaker } from "../../../src/batch/enqueue/make-segments.ts";
import {
  SEGMENT_BATCHES_MAX,
  SEGMENT_BYTES_TARGET,
  SEGMENT_RANGES_BYTES_TARGET,
} from "../../../src/contracts/limits/jobs.ts";

/** A file as the lengths of its lines; a blank one is negative. */
interface File {
  path: string;
  start?: number;
  lines: number[];
}

/** All segments that the maker gives for these files, including the last one; `batchBytes` after each item. */
function segmentsOf(batchSize: number, files: File[], firstBatch = 0, known?: { before: number }) {
  const maker = new SegmentMaker(batchSize, firstBatch);
  const segments: NewSegment[] = [];
  const batchBytes: number[] = [];
  for (const { path, start = 0, lines } of files) {
    maker.beginFile(path, `etag of ${path}`, start, known);
    let end = start;
    for (const length of lines) {
      end += Math.abs(length);
      if (length < 0) maker.blankLine(end);
      else {
        // A line is an item of that many bytes and its newline.
        const segment = maker.item(end, length - 1);
        if (segment !== undefined) segments.push(segment);
        batchBytes.push(maker.batch.compactBytes);
      }
    }
    maker.endFile();
  }
  const rest = maker.finish();
  if (rest !== undefined) segments.push(rest);
  expect(maker.nextBatch).toBe(firstBatch + segments.reduce((sum, { batch_count }) => sum + batch_count, 0));
  return { segments, batchBytes };
}

const range = (path: string, start: number, end: number) => ({ path, etag: `etag of ${path}`, start, end });
const HALF = SEGMENT_BYTES_TARGET / 2;

describe("segments", () => {
  it.each<[string, Parameters<typeof segmentsOf>, NewSegment[]]>([
    ["do not exist without lines", [2, [{ path: "a", lines: [] }]], []],
    ["do not exist for blank lines only", [2, [{ path: "a", lines: [-1, -3] }]], []],
    [
      "end with a batch that may be smaller",
      [2, [{ path: "a", lines: [3, 4, 5] }]],
      [
        {
          first_batch: 0,
          batch_count: 2,
          item_count: 3,
          ranges: [range("a", 0, 12)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "begin at the next batch and byte",
      [1, [{ path: "a", start: 100, lines: [3] }], 7],
      [
        {
          first_batch: 7,
          batch_count: 1,
          item_count: 1,
          ranges: [range("a", 100, 103)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "may have a batch that spans files, and no range of a file without lines",
      [
        3,
        [
          { path: "a", lines: [3, 4] },
          { path: "b", lines: [] },
          { path: "c", lines: [5] },
        ],
      ],
      [
        {
          first_batch: 0,
          batch_count: 1,
          item_count: 3,
          ranges: [range("a", 0, 7), range("c", 0, 5)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "record whether there are blank lines, which are not items",
      [1, [{ path: "a", lines: [-1, 3, -2] }]],
      [{ first_batch: 0, batch_count: 1, item_count: 1, ranges: [range("a", 0, 6)], has_blank_lines: true }],
    ],
    [
      "end when they reach the target size, and the next one starts empty",
      [
        1,
        [
          { path: "a", lines: [-1, HALF, HALF, 3] },
          { path: "b", lines: [4] },
        ],
      ],
      [
        {
          first_batch: 0,
          batch_count: 2,
          item_count: 2,
          ranges: [range("a", 0, 1 + 2 * HALF)],
          has_blank_lines: true,
        },
        {
          first_batch: 2,
          batch_count: 2,
          item_count: 2,
          ranges: [range("a", 1 + 2 * HALF, 4 + 2 * HALF), range("b", 0, 4)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "end at the target size, not one byte earlier",
      [1, [{ path: "a", lines: [HALF, HALF - 1, 1, HALF, HALF] }]],
      [
        {
          first_batch: 0,
          batch_count: 3,
          item_count: 3,
          ranges: [range("a", 0, 2 * HALF)],
          has_blank_lines: false,
        },
        {
          first_batch: 3,
          batch_count: 2,
          item_count: 2,
          ranges: [range("a", 2 * HALF, 4 * HALF)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "count the bytes of blank lines as read",
      [1, [{ path: "a", lines: [HALF, -HALF, 1, 1] }]],
      [
        {
          first_batch: 0,
          batch_count: 2,
          item_count: 2,
          ranges: [range("a", 0, 2 * HALF + 1)],
          has_blank_lines: true,
        },
        {
          first_batch: 2,
          batch_count: 1,
          item_count: 1,
          ranges: [range("a", 2 * HALF + 1, 2 * HALF + 2)],
          has_blank_lines: false,
        },
      ],
    ],
    [
      "count each byte of a blank line once",
      [1, [{ path: "a", lines: [HALF - 10, -5, 4, 1] }]],
      [
        {
          first_batch: 0,
          batch_count: 3,
          item_count: 3,
          ranges: [range("a", 0, HALF)],
          has_blank_lines: true,
        },
      ],
    ],
    [
      "do not end inside a batch",
      [3, [{ path: "a", lines: [HALF, HALF, HALF, 1] }]],
      [
        {
          first_batch: 0,
          batch_count: 1,
          item_count: 3,
          ranges: [range("a", 0, 3 * HALF)],
          has_blank_lines: false,
        },
        {
          first_batch: 1,
          batch_count: 1,
          item_count: 1,
          ranges: [range("a", 3 * HALF, 3 * HALF + 1)],
          has_blank_lines: false,
        },
      ],
    ],
  ])("%s", (_, given, expected) => {
    expect(segmentsOf(...given).segments).toEqual(expected);
  });

  it("have a maximum number of batches", () => {
    const lines = Array<number>(2 * SEGMENT_BATCHES_MAX + 1).fill(2);
    const counts = segmentsOf(1, [{ path: "a", lines }], 5).segments.map(({ batch_count }) => batch_count);
    expect(counts).toEqual([SEGMENT_BATCHES_MAX, SEGMENT_BATCHES_MAX, 1]);
  });

  const smallFiles = (count: number, nameLength: number): File[] =>
    Array.from({ length: count }, (_, at) => ({ path: `${at}-${"é".repeat(nameLength / 2)}`, lines: [3] }));
  const rangesText = ({ ranges }: NewSegment) => Buffer.byteLength(JSON.stringify(ranges));

  it.each([10, 200, 1000])("have few ranges of small files, with names of %i bytes", (nameLength) => {
    const { segments } = segmentsOf(1, smallFiles(5000, nameLength), 0, { before: 0 });
    const sizes = segments.map((segment) => rangesText(segment) / SEGMENT_RANGES_BYTES_TARGET);
    expect(Math.max(...sizes)).toBeLessThan(1.1);
    expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(0.8);
  });

  it("have more ranges if one batch does", () => {
    const [first, second, ...rest] = segmentsOf(3000, smallFiles(3500, 200)).segments;
    expect([first!.batch_count, first!.item_count, second!.item_count]).toEqual([1, 3000, 500]);
    expect([rangesText(first!) > SEGMENT_RANGES_BYTES_TARGET, rest]).toEqual([true, []]);
  });

  it("begin after a byte order mark", () => {
    const maker = new SegmentMaker(1, 0);
    maker.beginFile("a", "etag of a", 0);
    maker.skipTo(3);
    maker.item(10, 6);
    maker.endFile();
    expect(maker.finish()!.ranges).toEqual([range("a", 3, 10)]);
  });

  it("record the bytes of the last batch as a JSON array", () => {
    const files = [{ path: "a", lines: [3, 4, 5] }];
    // [xx] has four bytes, [xx,xxx] has eight, [xxxx] six.
    expect(segmentsOf(2, files).batchBytes).toEqual([4, 8, 6]);
  });

  it("have every line of every file once, in order, in whole batches", () => {
    const line = fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 3, max: 200 }) },
      { weight: 2, arbitrary: fc.integer({ min: -100, max: -1 }) },
      { weight: 2, arbitrary: fc.integer({ min: HALF / 2, max: HALF }) },
    );
    const file = fc.record({ start: fc.nat(1000), lines: fc.array(line, { maxLength: 20 }) });
    fc.assert(
      fc.property(
        fc.array(file, { maxLength: 5 }),
        fc.integer({ min: 1, max: 5 }),
        fc.nat(1000),
        (given, size, first) => {
          const files = given.map((each, at) => ({ path: `f${at}`, ...each }));
          const { segments } = segmentsOf(size, files, first);
          const items = files.flatMap(({ lines }) => lines).filter((length) => length > 0).length;
          expect(segments.reduce((sum, { item_count }) => sum + item_count, 0)).toBe(items);
          let batch = first;
          segments.forEach(({ first_batch, batch_count, item_count }, at) => {
            expect(first_batch).toBe(batch);
            if (at < segments.length - 1) expect(item_count).toBe(batch_count * size);
            else expect(batch_count).toBe(Math.ceil(item_count / size));
            batch += batch_count;
          });
          assertCovered(files, segments);
        },
      ),
    );
  });
});

/** The ranges of a file join up, from its start to its end; blank lines at the very end may be left out. */
function assertCovered(files: Required<File>[], segments: NewSegment[]): void {
  const ranges = segments.flatMap((segment) => segment.ranges);
  const places = ranges.map(({ path }) => Number(path.slice(1)));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  for (const { path, start, lines } of files) {
    let at = start;
    for (const each of ranges.filter((one) => one.path === path)) {
      expect(each.start).toBe(at);
      expect(each.end).toBeGreaterThan(at);
      at = each.end;
    }
    const lastItem = lines.findLastIndex((length) => length > 0);
    const needed = lines.slice(0, lastItem + 1).reduce((sum, length) => sum + Math.abs(length), start);
    expect(at).toBeGreaterThanOrEqual(needed);
  }
}

it("segments know which lines of their files they have, blank ones included, also where they cut a file", () => {
  const maker = new SegmentMaker(1, 0);
  const segments: (NewSegment | undefined)[] = [];
  // As after a restart: ten lines are enqueued already.
  maker.beginFile("a", "etag", 1000, { before: 10 });
  maker.blankLine(1001);
  segments.push(maker.item(1001 + HALF, HALF - 1), maker.item(1001 + 2 * HALF, HALF - 1));
  maker.blankLine(1002 + 2 * HALF);
  maker.item(1010 + 2 * HALF, 7);
  maker.endFile();
  maker.beginFile("", "own", 0, { before: 0, file: "b.gz" });
  maker.item(8, 7);
  maker.endFile();
  segments.push(maker.finish());
  const lines = segments.flatMap((segment) => segment?.ranges.map((range) => range.lines) ?? []);
  expect(lines).toEqual([
    { before: 10, items: 2 },
    { before: 13, items: 1 },
    { before: 0, items: 1, file: "b.gz" },
  ]);
});
