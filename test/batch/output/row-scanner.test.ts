import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowScanner } from "../../../src/batch/output/row-scanner.ts";

/** The bytes of each batch, in the order in which they come, from chunks of this length. */
function scanned(text: string, step: number): [number, string][] {
  const scanner = new RowScanner();
  const batches: [number, string][] = [];
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += step)
    for (const piece of scanner.scan(bytes.subarray(at, at + step))) {
      const last = batches[batches.length - 1];
      if (last?.[0] === piece.batchIndex) last[1] += piece.bytes.toString("latin1");
      else batches.push([piece.batchIndex, piece.bytes.toString("latin1")]);
    }
  scanner.end();
  return batches;
}

const row = (batch: number, prediction: unknown) =>
  `${JSON.stringify({ batch_index: batch, item_index: 0, prediction })}\n`;

describe("the rows of a part", () => {
  it("are found batch by batch, wherever the chunks end", () => {
    const predictions = fc.array(fc.tuple(fc.nat(3), fc.string()), { maxLength: 12 });
    fc.assert(
      fc.property(predictions, fc.integer({ min: 1, max: 60 }), (given, step) => {
        let batch = 0;
        const expected: [number, string][] = [];
        for (const [skip, prediction] of given) {
          batch += skip * 1_000_003;
          const line = Buffer.from(row(batch, prediction)).toString("latin1");
          const last = expected[expected.length - 1];
          if (last?.[0] === batch) last[1] += line;
          else expected.push([batch, line]);
        }
        const text = Buffer.from(expected.map(([, lines]) => lines).join(""), "latin1").toString();
        expect(scanned(text, step)).toEqual(expected);
      }),
    );
  });

  it.each([
    ["another object", '{"x":1}\n'],
    ["a number that is too long", '{"batch_index":12345678901,"prediction":1}\n'],
    ["no number", '{"batch_index":,"prediction":1}\n'],
    ["no JSON", "hello, this is something else\n"],
  ])("cannot be %s", (_, text) => {
    for (const step of [1, 7, 1000]) expect(() => scanned(text, step)).toThrow(/no row|cut off/);
  });

  it("cannot end inside of a row", () => {
    const text = row(1, "x");
    for (let length = 1; length < text.length; length++)
      expect(() => scanned(text.slice(0, length), 5)).toThrow("cut off");
  });
});
