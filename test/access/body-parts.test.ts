import { describe, expect, it } from "vitest";
import { keepPart } from "../../src/access/body-parts.ts";

describe("the parts of a body", () => {
  const keep = (sizes: number[]) => {
    const sent = sizes.map((size, i) => Buffer.alloc(size, i % 251));
    const parts: Buffer[] = [];
    let block: Buffer | undefined;
    for (const part of sent) block = keepPart(parts, part, block);
    expect(Buffer.concat(parts).equals(Buffer.concat(sent))).toBe(true);
    return { parts, sent };
  };

  it("are few if the body comes byte by byte, and take hardly more memory than their bytes", () => {
    const { parts } = keep(Array<number>(20_000).fill(1));
    expect(parts.length).toBeLessThan(8);
    const held = parts.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    expect(held).toBeLessThan(45_000);
  });

  it("are kept as they came if they are large or single", () => {
    const { parts, sent } = keep([65_536, 4096, 10, 65_536, 3]);
    expect(sent.map((part, i) => part === parts[i])).toEqual(Array(5).fill(true));
    expect(parts.length).toBe(5);
  });

  it("are complete in any order of sizes", () => {
    const { parts } = keep(Array.from({ length: 2000 }, (_, i) => (i * i * 7919) % 6000));
    expect(parts.length).toBeLessThan(2000);
  });
});
