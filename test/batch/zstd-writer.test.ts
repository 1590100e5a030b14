/** Compressed parts: how they are written, and that a replaced one costs its reader little. */
import { randomBytes } from "node:crypto";
import * as zlib from "node:zlib";
import { Zstd } from "@hpcc-js/wasm-zstd";
import { describe, expect, it } from "vitest";
import { chunksOf } from "../../src/batch/output/part-chunks.ts";
import { openCompressor, type ZstdCompressor } from "../../src/batch/zstd/compressor.ts";
import { unpacked } from "../../src/batch/zstd/unpack.ts";
import { ZstdWriter } from "../../src/batch/zstd/writer.ts";
import { PART_WINDOW_BYTES, ZSTD_LEVEL } from "../../src/contracts/limits/outputs.ts";
import type { ObjectStore, OpenObject } from "../../src/object-store/object-store.ts";
import { unzstd } from "../harness/decompress.ts";

const MIB = 1024 * 1024;
/** Rows of which some do not compress, more than the window has. */
const ROWS = Buffer.from(
  Array.from({ length: 40_000 }, (_, batch_index) => {
    const text = batch_index % 8 === 0 ? randomBytes(100).toString("hex") : "the same text ".repeat(10);
    return `${JSON.stringify({ batch_index, prediction: text })}\n`;
  }).join(""),
);

/** What the thread of an older Node does, in this one. */
async function libraryHere(): Promise<ZstdCompressor> {
  const zstd = await Zstd.load();
  zstd.setCompressionLevel(ZSTD_LEVEL);
  zstd.reset();
  return {
    compress: async (bytes) => zstd.compressChunk(bytes),
    end: async () => zstd.compressEnd(),
    close: () => {},
  };
}

/** Also Node's own, if it has one. */
const COMPRESSORS = [
  { name: "the library", open: libraryHere },
  ...("createZstdCompress" in zlib ? [{ name: "Node", open: async () => openCompressor() }] : []),
];

async function frameOf(rows: Buffer, appendedBytes: number, open = libraryHere): Promise<Buffer> {
  const packed: Uint8Array[] = [];
  const writer = new ZstdWriter(async (bytes) => void packed.push(bytes), await open());
  for (let at = 0; at < rows.length; at += appendedBytes)
    await writer.append(rows.subarray(at, at + appendedBytes));
  await writer.end();
  writer.close();
  expect(writer.unpackedBytes).toBe(rows.length);
  return Buffer.concat(packed);
}

async function* once(bytes: Uint8Array) {
  yield bytes;
}

describe("the writer of a compressed part", () => {
  const frames = "makes one frame with a window of 512 KiB, which is the same however its rows are appended";
  it.each(COMPRESSORS)(`${frames}, by $name`, async ({ open }) => {
    const frame = await frameOf(ROWS, MIB, open);
    expect(frame.length).toBeLessThan(ROWS.length / 3);
    expect(unzstd(frame).equals(ROWS)).toBe(true);
    const windows: number[] = [];
    const pieces: Uint8Array[] = [];
    for await (const piece of unpacked(once(frame), ({ windowBytes }) => void windows.push(windowBytes)))
      pieces.push(piece);
    expect(windows).toEqual([PART_WINDOW_BYTES]);
    expect(Buffer.concat(pieces).equals(ROWS)).toBe(true);
    for (const length of [999, 256 * 1024, 3 * MIB])
      expect((await frameOf(ROWS, length, open)).equals(frame)).toBe(true);
  });

  it.each(COMPRESSORS)("makes a frame of no rows, and one of a single row, by $name", async ({ open }) => {
    for (const rows of [Buffer.alloc(0), ROWS.subarray(0, ROWS.indexOf("\n") + 1)])
      expect(unzstd(await frameOf(rows, MIB, open)).equals(rows)).toBe(true);
  });

  it("holds one piece, and compresses the next when the store has taken the last", async () => {
    const order: string[] = [];
    const compressor: ZstdCompressor = {
      compress: async (bytes) => {
        order.push(`compressed ${bytes.length}`);
        return Buffer.from("packed");
      },
      end: async () => Buffer.from("end"),
      close: () => order.push("closed"),
    };
    const write = async (bytes: Uint8Array) => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`stored ${String(bytes)}`);
    };
    const writer = new ZstdWriter(write, compressor);
    await writer.append(Buffer.alloc(600 * 1024));
    await writer.end();
    writer.close();
    const piece = ["compressed 262144", "stored packed"];
    expect(order).toEqual([...piece, ...piece, "compressed 90112", "stored packed", "stored end", "closed"]);
  });
});

/** A store with one object, which counts what is read of it. */
function storeWith(content: Buffer) {
  const seen = { read: 0, open: 0 };
  const object: Pick<OpenObject, "read" | "close"> = {
    read: async (target, offset, position, length) => {
      const copied = content.copy(target, offset, position, position + length);
      seen.read += copied;
      return copied;
    },
    close: async () => void seen.open--,
  };
  const open = async () => {
    seen.open++;
    return object as OpenObject;
  };
  return { store: { open } as unknown as ObjectStore, seen };
}

async function sizeOf(content: Buffer, written: { bytes: number; unpacked_bytes: number }) {
  const { store, seen } = storeWith(content);
  let bytes = 0;
  let error = "";
  try {
    for await (const chunk of chunksOf(store, "", { name: "part", ...written })) bytes += chunk.length;
  } catch (thrown) {
    error = (thrown as Error).message;
  }
  expect(seen.open).toBe(0);
  return { bytes, error, read: seen.read };
}

describe("the reader of a compressed part", () => {
  const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
  /** 128 KiB in four bytes. */
  const REPEATED = Buffer.from([0x02, 0x00, 0x10, 0x78]);

  it("reads what was written, and nothing of a part that has more bytes", async () => {
    const frame = await frameOf(ROWS, MIB);
    const written = { bytes: frame.length, unpacked_bytes: ROWS.length };
    expect(await sizeOf(frame, written)).toEqual({ bytes: ROWS.length, error: "", read: frame.length });
    const skipped = Buffer.concat([
      Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0xff, 0]),
      Buffer.alloc(16 * MIB),
    ]);
    const { bytes, error, read } = await sizeOf(skipped, written);
    expect({ bytes, error }).toEqual({
      ...{ bytes: 0, error: `it has more than the ${frame.length} bytes that were written` },
    });
    expect(read).toBeLessThan(frame.length + MIB);
  });

  it("stops when more comes than was written, so that a few bytes are not unpacked to gigabytes", async () => {
    const blocks = Array<Buffer>(100_000).fill(REPEATED);
    const bomb = Buffer.concat([Buffer.from([...MAGIC, 0x00, 0x48]), ...blocks]);
    const { bytes, error } = await sizeOf(bomb, { bytes: bomb.length, unpacked_bytes: MIB });
    expect(error).toBe(`it unpacks to more bytes, and ${MIB} were written`);
    expect(bytes).toBe(MIB);
  });

  it.each([
    [
      "less than was written",
      Buffer.from([...MAGIC, 0x00, 0x48, 0x01, 0, 0]),
      /unpacks to 0 bytes, and 9 were/,
    ],
    [
      "a window of 16 MiB",
      Buffer.from([...MAGIC, 0x00, 0x70, 0x01, 0, 0]),
      /a window of 16777216 bytes is more/,
    ],
    ["no Zstandard", Buffer.from('{"batch_index":0}'), /it does not begin like Zstandard/],
    ["a frame without an end", Buffer.from([...MAGIC, 0x00, 0x48, 0x00, 0, 0]), /unexpected end of file/],
  ])("says that the part has %s", async (_what, content, message) => {
    const { error } = await sizeOf(content, { bytes: content.length, unpacked_bytes: 9 });
    expect(error).toMatch(message);
  });

  it("closes the object when nobody wants the rest of it", async () => {
    const frame = await frameOf(ROWS, MIB);
    const { store, seen } = storeWith(frame);
    const chunks = chunksOf(store, "", { name: "part", bytes: frame.length, unpacked_bytes: ROWS.length });
    expect((await chunks.next()).done).toBe(false);
    await chunks.return(undefined);
    expect(seen.open).toBe(0);
    expect(seen.read).toBeLessThan(frame.length);
  });

  it("passes on what the store says", async () => {
    const object = {
      read: async () => {
        throw new RangeError("the store is away");
      },
      close: async () => {},
    };
    const store = { open: async () => object } as unknown as ObjectStore;
    const all = async () => {
      for await (const _ of chunksOf(store, "", { name: "part", bytes: 9, unpacked_bytes: 9 }));
    };
    await expect(all()).rejects.toThrow(RangeError);
  });
});
