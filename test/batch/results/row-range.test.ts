import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowRange } from "../../../src/batch/results/row-range.ts";

const row = (batch: number, prediction: unknown) =>
  `${JSON.stringify({ batch_index: batch, item_index: 0, prediction })}\n`;

/** What is cut out of the text in chunks of this length, and each `next` on the way. */
function cut(text: string, step: number, first: number, end: number) {
  const range = new RowRange(first, end);
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  const next: number[] = [];
  for (let at = 0; at < bytes.length && !range.isDone; at += step) {
    pieces.push(range.cut(bytes.subarray(at, at + step)));
    next.push(range.next);
  }
  return { text: Buffer.concat(pieces).toString(), next, isDone: range.isDone };
}

describe("the rows of a range", () => {
  const predictions = fc.array(fc.tuple(fc.nat(3), fc.string()), { maxLength: 14 });
  const batches = fc.nat(20);

  it("are exactly those of its batches, wherever the chunks end", () => {
    fc.assert(
      fc.property(
        predictions,
        batches,
        batches,
        fc.integer({ min: 1, max: 90 }),
        (given, from, count, step) => {
          let batch = 0;
          const rows = given.map(([skip, prediction]) => {
            batch += skip;
            return { batch, text: row(batch, prediction) };
          });
          const end = from + count;
          const wanted = rows.filter((each) => each.batch >= from && each.batch < end);
          const found = cut(rows.map(({ text }) => text).join(""), step, from, end);
          expect(found.text).toBe(wanted.map(({ text }) => text).join(""));
          expect(found.isDone).toBe(rows.some((each) => each.batch >= end));
          expect(found.next).toEqual([...found.next].sort((a, b) => a - b));
        },
      ),
      { numRuns: 500 },
    );
  });

  it("say which batch is not complete yet", () => {
    const text = row(3, "a") + row(5, "b") + row(5, "c");
    const first = row(3, "a").length;
    expect(cut(text.slice(0, first), 1000, 0, 9).next).toEqual([3]);
    expect(cut(text.slice(0, first + 5), 1000, 0, 9).next).toEqual([3]);
    expect(cut(text.slice(0, first + 25), 1000, 0, 9).next).toEqual([5]);
    expect(cut(text, 1000, 0, 4)).toEqual({ text: row(3, "a"), next: [4], isDone: true });
  });

  it("are views of the chunk, so that nothing is copied", () => {
    const chunk = Buffer.from(row(1, "a") + row(2, "b"));
    const found = new RowRange(0, 9).cut(chunk);
    expect(found.buffer).toBe(chunk.buffer);
    expect(found).toEqual(chunk);
  });

  it.each(['{"x":1}\n', "hello, this is something else\n"])("cannot be %s", (text) => {
    for (const step of [1, 7, 1000]) expect(() => cut(text, step, 0, 9)).toThrow("no row");
  });
});
