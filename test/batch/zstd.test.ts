import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { admitFrames } from "../../src/batch/zstd/admit.ts";
import { unpackZstd } from "../../src/batch/zstd/frames.ts";
import { type WindowWait, ZstdReader } from "../../src/batch/zstd/reader.ts";
import { eventually } from "../harness/eventually.ts";

const samples = JSON.parse(readFileSync(new URL("zstd-samples.json", import.meta.url), "utf8")) as {
  name: string;
  made_with: string;
  sha256: string;
  compressed: string;
}[];

async function* pieces(bytes: Uint8Array, length: number) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function unpack(bytes: Uint8Array, length = 64 * 1024): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of unpackZstd(pieces(bytes, length), () => {})) parts.push(part);
  return Buffer.concat(parts);
}

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
/** A frame of the window that is meant by its byte, and of blocks. */
const frame = (window: number, ...blocks: number[]) => Buffer.from([...MAGIC, 0x00, window, ...blocks]);
const WINDOW_1_MIB = 0x50;
const wait = (signal = new AbortController().signal, onWait: WindowWait["onWait"] = () => {}) => ({
  signal,
  onWait,
});

describe("Zstandard in TypeScript", () => {
  it.each(samples)("unpacks $name of $made_with, in pieces of any length", async ({ compressed, sha256 }) => {
    const bytes = Buffer.from(compressed, "base64");
    for (const length of [1 << 20, 1000, 1]) {
      const unpacked = await unpack(bytes, length);
      expect(createHash("sha256").update(unpacked).digest("hex")).toBe(sha256);
    }
  });

  it("unpacks consecutive frames, and skips skippable frames", async () => {
    const short = Buffer.from(samples.find(({ name }) => name === "short")!.compressed, "base64");
    const skipped = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    const text = '{"id": 5}\n{"id": 6}\n';
    expect(String(await unpack(Buffer.concat([skipped, short, skipped, short])))).toBe(text + text);
  });

  it.each([
    ["unpacked", unpackZstd],
    ["checked", admitFrames],
  ])("lets others run while empty frames are %s, though all came in one chunk", async (_what, read) => {
    const skipped = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    const bytes = Buffer.alloc(1 << 21, skipped);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    for await (const _ of read(pieces(bytes, bytes.length), () => {}));
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });

  it.each([
    ["a window of 1 GiB", frame(0xa0, 0x01, 0x00, 0x00), /needs a window of 1024 MiB .*at most 128 MiB/],
    ["a content of 2^60 bytes", Buffer.from([...MAGIC, 0xe0, 0, 0, 0, 0, 0, 0, 0, 16]), /needs a window of/],
  ])("refuses %s before it allocates memory", async (_what, bytes, message) => {
    const before = process.memoryUsage().arrayBuffers;
    const reader = new ZstdReader("file:///x.zst", wait());
    const all = async () => {
      for await (const _ of reader.unpack(pieces(bytes, 100)));
    };
    await expect(all()).rejects.toThrow(message);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
  });

  it("limits the window of every frame of a file, not only of the first", async () => {
    const small = frame(WINDOW_1_MIB, 0x0b, 0x00, 0x00, 0x61);
    const large = frame(0x70, 0x0b, 0x00, 0x00, 0x62);
    const skipped = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    const read = async (...frames: Buffer[]) => {
      const reader = new ZstdReader("file:///x.zst", wait());
      const parts: Uint8Array[] = [];
      try {
        for await (const part of reader.unpack(pieces(Buffer.concat(frames), 7))) parts.push(part);
      } finally {
        reader.close();
      }
      return String(Buffer.concat(parts));
    };
    expect(await read(small, skipped, large, small)).toBe("aba");
    await expect(read(small, skipped, frame(0xa0, 0x01, 0x00, 0x00))).rejects.toThrow(
      "needs a window of 1024 MiB",
    );
    await expect(read(large, skipped.subarray(0, 9))).rejects.toThrow();
  });

  it.each([
    ["a reserved type", frame(WINDOW_1_MIB, 0x07, 0, 0)],
    ["a run of 2 MiB", frame(WINDOW_1_MIB, 0x03, 0x00, 0xff, 0x0a)],
    ["missing bytes", frame(WINDOW_1_MIB, 0x01, 0x00, 0x08)],
    [
      "a match before the start",
      frame(WINDOW_1_MIB, 0x4d, 0x00, 0x00, 0x08, 0x61, 0x01, 0x54, 0x00, 0x1f, 0x00, 0xff, 0xff, 0xff),
    ],
  ])("refuses a block of %s", async (_what, bytes) => {
    await expect(unpack(bytes)).rejects.toThrow();
  });

  it("ends for every truncated or damaged file, with bounded output", async () => {
    const blockBytes = 128 * 1024;
    for (const { name, compressed } of samples.filter(
      ({ name }) => name === "short" || name === "skewed" || name === "far",
    )) {
      const whole = Buffer.from(compressed, "base64");
      const step = name === "short" ? 1 : 211;
      for (let at = 0; at < whole.length; at += step) {
        const broken = Buffer.from(whole);
        broken[at]! ^= 1 << (at % 8);
        const blocks = Math.ceil(whole.length / 3);
        const unpacked = await unpack(broken).catch(() => undefined);
        expect(unpacked?.length ?? 0).toBeLessThanOrEqual(blocks * blockBytes);
        if (at < whole.length - 4) await expect(unpack(whole.subarray(0, at || 1))).rejects.toThrow();
      }
    }
  });

  it("yields between blocks, and unpacks only what is requested", async () => {
    const empty = Buffer.alloc(3 * 300_000);
    const bytes = Buffer.concat([frame(WINDOW_1_MIB), empty, Buffer.from([1, 0, 0])]);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    expect((await unpack(bytes, 1 << 20)).length).toBe(0);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
    let taken = 0;
    const run = Buffer.from([0x02, 0x00, 0x10, 0x0a]);
    async function* endless() {
      yield frame(WINDOW_1_MIB);
      for (;;) {
        taken++;
        yield Buffer.concat(Array(1000).fill(run));
      }
    }
    for await (const part of unpackZstd(endless(), () => {})) {
      expect(part.length).toBe(32 * 1024);
      break;
    }
    expect(taken).toBe(1);
  });

  it("holds at most two large windows, and opens the next once one is closed", async () => {
    // 16 MiB.
    const bytes = frame(0x70, 0x0b, 0x00, 0x00, 0x61);
    const ends = Array.from({ length: 4 }, () => new AbortController());
    const waits: [reader: number, isWaiting: boolean][] = [];
    const readers = ends.map(
      ({ signal }, at) =>
        new ZstdReader(
          "file:///x.zst",
          wait(signal, (reason) => waits.push([at, reason !== undefined])),
        ),
    );
    const first = readers.map((reader) => reader.unpack(pieces(bytes, 100))[Symbol.asyncIterator]().next());
    const begun: number[] = [];
    for (const [at, promise] of first.entries()) promise.then(() => begun.push(at)).catch(() => {});
    await Promise.all(first.slice(0, 2));
    const waiting = () => waits.filter(([, isWaiting]) => isWaiting);
    await eventually("the others wait", () => waiting().length >= 2);
    // Two that are admitted unpack side by side: either may be first.
    expect(begun.toSorted()).toEqual([0, 1]);
    expect(waiting().toSorted()).toEqual([
      [2, true],
      [3, true],
    ]);
    expect(readers.map(({ isAwaited }) => isAwaited)).toEqual([true, true, false, false]);
    ends[2]!.abort(new Error("the job has ended"));
    await expect(first[2]).rejects.toThrow("the job has ended");
    readers[2]!.close();
    readers[0]!.close();
    await first[3];
    expect(begun.toSorted()).toEqual([0, 1, 3]);
    expect(waits.at(-1)).toEqual([3, false]);
    expect(readers.map(({ isAwaited }) => isAwaited)).toEqual([false, false, false, false]);
    for (const reader of readers) reader.close();
  });
});
