/** Files and lines of items, through the segments that the enqueuer makes and the reader that leases them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SegmentReader } from "../../../src/batch/dispatch/segment-reader.ts";
import { type NewSegment, SegmentMaker } from "../../../src/batch/enqueue/make-segments.ts";
import { sourceOfLine } from "../../../src/batch/isolate/item-source.ts";
import type { JobInput } from "../../../src/batch/records/job-input.ts";

/** Files as their lines, of which the blank ones are empty. */
function segmentsOf(files: ReadonlyMap<string, string[]>, batchSize: number, cutEvery: number): NewSegment[] {
  const segments: NewSegment[] = [];
  let maker = new SegmentMaker(batchSize, 0);
  let items = 0;
  for (const [path, lines] of files) {
    maker.beginFile(path, "etag", 0, { before: 0 });
    let end = 0;
    for (const [i, line] of lines.entries()) {
      end += line.length + 1;
      if (line === "") {
        maker.blankLine(end);
        continue;
      }
      maker.item(end, line.length);
      // As after a restart: the enqueuer continues behind the last committed segment.
      if (++items % (batchSize * cutEvery) === 0) {
        segments.push(maker.finish()!);
        maker = new SegmentMaker(batchSize, maker.nextBatch);
        maker.beginFile(path, "etag", end, { before: i + 1 });
      }
    }
    maker.endFile();
  }
  const rest = maker.finish();
  return rest === undefined ? segments : [...segments, rest];
}

const inputOf = (files: ReadonlyMap<string, string[]>): JobInput =>
  ({
    open: async (path: string) => {
      const content = Buffer.from(
        files
          .get(path)!
          .map((line) => `${line}\n`)
          .join(""),
      );
      const read = async (into: Buffer, offset: number, position: number, length: number) =>
        content.copy(into, offset, position, Math.min(position + length, content.length));
      return { path, etag: "etag", bytes: content.length, read, close: async () => {} };
    },
  }) as unknown as JobInput;

describe("the source of an item", () => {
  it("is its file and line, with blank lines and batches over several files", async () => {
    const line = fc.constantFrom("", '{"a":1}', "{}");
    const filesOf = fc.array(fc.array(line, { maxLength: 12 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        filesOf,
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 5 }),
        async (all, size, cut) => {
          const files = new Map(all.map((lines, i) => [`file ${i}`, lines]));
          const expected = all.flatMap((lines, i) =>
            lines.flatMap((text, at) => (text === "" ? [] : [{ path: `file ${i}`, line: at + 1 }])),
          );
          const found = [];
          const reader = new SegmentReader(inputOf(files), size);
          for (const segment of segmentsOf(files, size, cut)) {
            const { lineNumbers } = await reader.load({
              ...segment,
              settled: new Uint8Array(),
              settled_count: 0,
            });
            for (let at = 0; at < segment.item_count; at++)
              found.push(sourceOfLine(segment, at, lineNumbers));
          }
          await reader.close();
          expect(found).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("is unknown for inline items", () => {
    const ranges = [{ path: "", etag: "own", start: 0, end: 100 }];
    expect(sourceOfLine({ ranges }, 3, undefined)).toBeUndefined();
  });

  it("is the compressed file that a line was copied from", () => {
    const lines = { before: 10, items: 5, file: "s3://b/a.jsonl.gz" };
    const ranges = [{ path: "", etag: "own", start: 0, end: 100, lines }];
    expect(sourceOfLine({ ranges }, 3, undefined)).toEqual({ path: "s3://b/a.jsonl.gz", line: 14 });
  });
});
