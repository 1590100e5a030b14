/** Compressed files that unpack to nothing for long, and those that nobody reads any more. */
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
