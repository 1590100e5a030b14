import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { entriesBytes, writeEntries } from "../../../src/batch/dispatch/lease-entries.ts";
import { SegmentMemory } from "../../../src/batch/dispatch/segment-memory.ts";

/** The format that a worker reads: [batch index, payload]*. */
function decode(bytes: Buffer): [number, unknown][] {
  const entries: [number, unknown][] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4);
    const payload = bytes.subarray(at + 8, at + 8 + length).toString();
    entries.push([bytes.readUInt32LE(at), JSON.parse(payload) as unknown]);
    at += 8 + length;
  }
  return entries;
}

describe("lease entries", () => {
  it("are the lines as JSON arrays, one for each batch, of the recorded length", () => {
    const items = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 12 }), fc.nat(1_000_000), (values, size, first) => {
        const lines = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
        const count = Math.ceil(values.length / size);
        const target = Buffer.alloc(entriesBytes(count, lines.length));
        const starts = writeEntries(lines, first, count, size, target)!;
        expect(starts.at(-1)).toBe(target.length);
        const expected = Array.from({ length: count }, (_, i) => [
          first + i,
          values.slice(i * size, (i + 1) * size),
        ]);
        expect(JSON.stringify(decode(target))).toBe(JSON.stringify(expected));
        const last = target.subarray(starts[count - 1]!, starts[count]!);
        expect(decode(last)[0]![0]).toBe(first + count - 1);
      }),
    );
  });

  it("are refused if there are too few lines for the batches", () => {
    const target = Buffer.alloc(100);
    expect(writeEntries(Buffer.from("{}\n{}\n"), 0, 2, 2, target)).toBeUndefined();
    expect(writeEntries(Buffer.from("{}\n{}\n"), 0, 2, 1, target)).toBeDefined();
  });
});

describe("the memory of segments", () => {
  it("is reused only for a segment that fits into it", () => {
    const memory = new SegmentMemory();
    const small = memory.take(10);
    const large = memory.take(2_000_000);
    memory.giveBack(small);
    memory.giveBack(large);
    expect(memory.take(1_000_000)).toBe(large);
    expect(memory.take(1_000_000)).not.toBe(large);
    expect(memory.take(200_000)).toBe(small);
  });

  it("keeps few, and no large ones: many jobs run at once", () => {
    const memory = new SegmentMemory();
    const given = Array.from({ length: 10 }, () => memory.take(1_000_000));
    const huge = memory.take(8_000_000);
    for (const buffer of [huge, ...given]) memory.giveBack(buffer);
    const again = Array.from({ length: 10 }, () => memory.take(1_000_000));
    expect(again.filter((buffer) => given.includes(buffer))).toHaveLength(3);
    expect(again).not.toContain(huge);
  });
});
