/** Compressed files with padding, those that unpack to nothing for long, and those that nobody reads any more. */
import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Compression, DecompressedObject } from "../../../src/batch/enqueue/decompress.ts";
import { COMPRESSED_SILENT_BYTES_MAX } from "../../../src/contracts/limits/input-files.ts";
import type { OpenObject } from "../../../src/object-store/object-store.ts";

/** Of Zstandard: a frame without a byte, and one that is skipped. */
const EMPTY_FRAME = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50, 0x01, 0x00, 0x00]);
const SKIPPED_FRAME = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
const NOTHING: [string, Compression, Buffer][] = [
  ["frames without a byte", "zst", EMPTY_FRAME],
  ["frames that are skipped", "zst", SKIPPED_FRAME],
  ["members without a byte", "gz", gzipSync("")],
  ["members without a byte, each with a zero after it", "gz", Buffer.concat([gzipSync(""), Buffer.alloc(1)])],
];

/** The unit again and again, and how much of it was read. */
function endless(unit: Buffer): OpenObject & { readUpTo: number } {
  const piece = Buffer.concat(Array<Buffer>(Math.ceil((256 * 1024) / unit.length)).fill(unit));
  return {
    ...{ path: "file:///x", bytes: Number.POSITIVE_INFINITY, etag: "1", readUpTo: 0 },
    async read(into, offset, position, length) {
      const at = position % unit.length;
      const bytes = piece.copy(into, offset, at, Math.min(piece.length, at + length));
      this.readUpTo = position + bytes;
      return bytes;
    },
    close: async () => {},
  };
}

/** All that the file unpacks to. */
async function unpack(file: Buffer): Promise<string> {
  const object: OpenObject = {
    ...{ path: "file:///in/x.gz", bytes: file.length, etag: "1" },
    read: async (into, offset, position, length) =>
      file.copy(into, offset, position, Math.min(file.length, position + length)),
    close: async () => {},
  };
  const wait = { signal: new AbortController().signal, onWait: () => {} };
  const unpacked = new DecompressedObject(object, "gz", wait);
  const into = Buffer.alloc(10_000);
  const pieces: Buffer[] = [];
  for (let at = 0, bytes = -1; bytes !== 0; at += bytes) {
    bytes = await unpacked.read(into, 0, at, into.length);
    pieces.push(Buffer.from(into.subarray(0, bytes)));
  }
  await unpacked.close();
  return Buffer.concat(pieces).toString();
}

describe("a .gz file", () => {
  const CHUNK = 256 * 1024;
  const one = gzipSync("one\n");
  const two = gzipSync("two\n");
  // Of more than one chunk, packed and unpacked.
  const text = Array.from({ length: 9_000 }, () => `${randomUUID()}${randomUUID()}\n`).join("");
  const long = gzipSync(text);
  const zeros = (bytes: number) => Buffer.alloc(bytes);

  it.each([
    1,
    512,
    CHUNK - one.length,
    CHUNK - one.length + 1,
    CHUNK - one.length - 1,
    CHUNK - one.length - 5,
    CHUNK,
    3 * CHUNK,
    COMPRESSED_SILENT_BYTES_MAX + CHUNK,
  ])("may have %d zeros after each of its members", async (bytes) => {
    const members = [one, two, long, one, Buffer.concat([two, one]), gzipSync(""), two];
    const file = Buffer.concat(members.flatMap((member) => [member, zeros(bytes)]));
    expect(await unpack(file)).toBe(`one\ntwo\n${text}one\ntwo\none\ntwo\n`);
    expect(await unpack(Buffer.concat([file, one]))).toHaveLength(text.length + 28);
  });

  it.each([
    ["text", Buffer.from("text")],
    ["text after a zero", Buffer.concat([zeros(1), Buffer.from("text")])],
    ["text after many zeros", Buffer.concat([zeros(CHUNK), Buffer.from("text")])],
    ["text where a chunk begins", Buffer.concat([zeros(CHUNK - one.length), Buffer.from("text")])],
    ["the first byte of a member", two.subarray(0, 1)],
    ["the first byte of a member after a zero", Buffer.concat([zeros(1), two.subarray(0, 1)])],
    ["half a member after a zero", Buffer.concat([zeros(1), two.subarray(0, 15)])],
  ])("is damaged if after its members comes %s", async (_, rest) => {
    const damage =
      /^file:\/\/\/in\/x\.gz cannot be decompressed: (incorrect header check|unexpected end of file)$/;
    await expect(unpack(Buffer.concat([one, rest]))).rejects.toThrow(damage);
  });
});

describe("a compressed file", () => {
  const into = Buffer.alloc(100);

  it.each(NOTHING)("may not have endless %s", async (_, compression, unit) => {
    const object = endless(unit);
    const wait = { signal: new AbortController().signal, onWait: () => {} };
    const unpacked = new DecompressedObject(object, compression, wait);
    await expect(unpacked.read(into, 0, 0, 100)).rejects.toThrow("has 16 MiB that unpack to nothing");
    expect(object.readUpTo).toBeLessThan(COMPRESSED_SILENT_BYTES_MAX + (1 << 20));
    await unpacked.close();
  });

  it.each(NOTHING)("of %s is not read on once its job has ended", async (_, compression, unit) => {
    const object = endless(unit);
    const end = new AbortController();
    const unpacked = new DecompressedObject(object, compression, { signal: end.signal, onWait: () => {} });
    const read = unpacked.read(into, 0, 0, 100);
    end.abort(new Error("the job has ended"));
    await expect(read).rejects.toThrow("the job has ended");
    expect(object.readUpTo).toBeLessThan(2 << 20);
    await unpacked.close();
  });
});
