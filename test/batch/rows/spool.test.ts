/** The spool of a job: what workers sent is on the disk, in pieces that never overlap, before it counts. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RowsIndex } from "../../../src/batch/rows/rows-by-batch.ts";
import { NO_ROWS } from "../../../src/batch/rows/rows-place.ts";
import { Spool } from "../../../src/batch/rows/spool.ts";
import { SpoolFiles } from "../../../src/batch/rows/spool-files.ts";
import {
  OUTPUT_WINDOW_BYTES,
  SPOOL_FILE_BYTES,
  SPOOL_WRITE_BYTES,
} from "../../../src/contracts/limits/outputs.ts";

const diskWait = { onWait: () => {}, signal: new AbortController().signal };
let directory: string;
let spool: Spool;
const openSpool = (epoch: number) => Spool.open(directory, { lastFile: 0, epoch }, diskWait);

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "quern-spool-"));
  spool = openSpool(1);
});
afterEach(async () => {
  await spool.close();
  rmSync(directory, { recursive: true, force: true });
});

async function contentOf({ file, offset, bytes }: { file: number; offset: number; bytes: number }) {
  const into = Buffer.alloc(bytes);
  await spool.read(file, offset, into, bytes);
  return into.toString();
}

describe("the rows of a worker", () => {
  it("are found at the place of their batch, however the bytes came", async () => {
    const stream = spool.stream(() => {});
    for (const piece of ["a\nbb", "\ncc", "c\n"]) stream.append(Buffer.from(piece));
    const places = [2, 3, 4].map((bytes) => stream.take({ rows: 1, bytes }));
    expect(stream.untaken).toBe(0);
    await spool.sync();
    expect(await Promise.all(places.map(contentOf))).toEqual(["a\n", "bb\n", "ccc\n"]);
  });

  it("are copied, because the memory in which they came is used again", async () => {
    const stream = spool.stream(() => {});
    const memory = Buffer.alloc(SPOOL_WRITE_BYTES + 5, "a");
    stream.append(memory);
    memory.fill("b");
    stream.append(memory);
    memory.fill("c");
    const bytes = memory.length;
    const places = [stream.take({ rows: 1, bytes }), stream.take({ rows: 1, bytes })];
    await spool.sync();
    expect(await Promise.all(places.map(contentOf))).toEqual(["a".repeat(bytes), "b".repeat(bytes)]);
  });

  it("are granted again once they are written, and not more than that", async () => {
    let granted = 0;
    const stream = spool.stream((bytes) => {
      granted += bytes;
    });
    stream.append(Buffer.alloc(OUTPUT_WINDOW_BYTES));
    expect(() => stream.append(Buffer.alloc(1))).toThrow("only 0 are granted");
    await spool.sync();
    expect(granted).toBe(OUTPUT_WINDOW_BYTES);
    stream.append(Buffer.alloc(1));
  });

  it("go to a file of their own, and to the next one when that is full", async () => {
    const [one, other] = [spool.stream(() => {}), spool.stream(() => {})];
    const piece = Buffer.alloc(OUTPUT_WINDOW_BYTES, "x");
    const files: number[] = [];
    for (let sent = 0; sent <= SPOOL_FILE_BYTES; sent += piece.length) {
      one.append(piece);
      files.push(one.take({ rows: 1, bytes: piece.length }).file);
      await spool.sync();
    }
    other.append(Buffer.from("y"));
    const { file } = other.take({ rows: 1, bytes: 1 });
    expect(new Set([...files, file]).size).toBe(3);
    expect(files[0]).not.toBe(files[files.length - 1]);
    expect(files).not.toContain(file);
  });

  it("never go to a file of an earlier controller, also while that writes", async () => {
    const stream = spool.stream(() => {});
    stream.append(Buffer.from("old"));
    const former = stream.take({ rows: 1, bytes: 3 });
    const late = spool.stream(() => {});
    await spool.sync();
    const old = spool;
    spool = openSpool(2);
    const next = spool.stream(() => {});
    next.append(Buffer.from("new"));
    const place = next.take({ rows: 1, bytes: 3 });
    await spool.sync();
    late.append(Buffer.from("late"));
    await old.close();
    expect(await Promise.all([place, former].map(contentOf))).toEqual(["new", "old"]);
  });

  it("that come after the end are dropped: nothing is written again", async () => {
    const stream = spool.stream(() => {});
    stream.append(Buffer.from("a\n"));
    const place = stream.take({ rows: 1, bytes: 2 });
    await spool.close();
    stream.append(Buffer.alloc(SPOOL_WRITE_BYTES, "b"));
    await spool.end(stream);
    expect(await contentOf(place)).toBe("a\n");
    expect(statSync(join(directory, `${place.file}.jsonl`)).size).toBe(2);
  });

  it("are still there when the worker is gone", async () => {
    const stream = spool.stream(() => {});
    stream.append(Buffer.from("abc"));
    const place = stream.take({ rows: 1, bytes: 3 });
    await spool.end(stream);
    expect(await contentOf(place)).toBe("abc");
  });
});

describe("the files of the spool", () => {
  const rows = (file: number) => ({ file, offset: 0, bytes: 5, rows: 1 });

  it("are removed once all their batches are in parts, and nobody writes them", async () => {
    const [done, current] = [spool.stream(() => {}), spool.stream(() => {})];
    for (const stream of [done, current]) stream.append(Buffer.from("12345"));
    await spool.end(done);
    await spool.sync();
    const files = new SpoolFiles(spool);
    files.has(3, rows(done.fileNumber));
    files.has(7, rows(current.fileNumber));
    await files.removeBefore(3);
    expect(existsSync(join(directory, `${done.fileNumber}.jsonl`))).toBe(true);
    await files.removeBefore(8);
    expect(readdirSync(directory)).toEqual([`${current.fileNumber}.jsonl`]);
    await spool.end(current);
    await files.removeBefore(8);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("are removed at a start if no settled batch has rows in them", async () => {
    const files: number[] = [];
    for (let i = 0; i < 3; i++) {
      const stream = spool.stream(() => {});
      stream.append(Buffer.from("12345"));
      files.push(stream.fileNumber);
      await spool.end(stream);
    }
    const index = await RowsIndex.open(directory, 1);
    await index.write(
      [
        { batchIndex: 0, place: rows(files[0]!) },
        { batchIndex: 1, place: rows(files[1]!) },
      ],
      files[2]!,
    );
    await new SpoolFiles(spool).begin(index, { firstNew: 0, totalBatches: 5 }, (batch) => batch === 1);
    expect(readdirSync(directory).sort()).toEqual([`${files[1]}.jsonl`, "index.1"]);
    await index.close();
  });
});

describe("the index of rows", () => {
  it("gives back each batch's place, and none for others", async () => {
    const index = await RowsIndex.open(directory, 1);
    const place = { file: 4_000_000_000, offset: 3_000_000_000, bytes: 268_435_456, rows: 99 };
    await index.write(
      [
        { batchIndex: 3, place },
        { batchIndex: 4, place: NO_ROWS },
        { batchIndex: 9, place: { ...place, rows: 1 } },
      ],
      12,
    );
    const read = await index.read(2, 10);
    expect(read[1]).toEqual(place);
    expect(read[7]).toEqual({ ...place, rows: 1 });
    expect(read.filter(({ bytes }) => bytes === 0)).toHaveLength(8);
    await index.close();
  });

  const place = { file: 1, offset: 2, bytes: 3, rows: 4 };

  it("is continued by the next controller", async () => {
    const first = await RowsIndex.open(directory, 1);
    await first.write([{ batchIndex: 5, place }], 12);
    await first.close();
    const second = await RowsIndex.open(directory, 2);
    expect(await second.read(5, 1)).toEqual([place]);
    expect(second.lastFile).toBe(12);
    await second.close();
    expect(readdirSync(directory)).toEqual(["index.2"]);
  });

  it("has no entry that a former controller writes later", async () => {
    const former = await RowsIndex.open(directory, 1);
    await former.write([{ batchIndex: 5, place }], 12);
    const index = await RowsIndex.open(directory, 3);
    const own = { ...place, file: 99 };
    await index.write([{ batchIndex: 6, place: own }], 99);
    const late = { ...place, offset: 7 };
    await former.write(
      [5, 6, 7].map((batchIndex) => ({ batchIndex, place: late })),
      13,
    );
    expect(await index.read(5, 3)).toEqual([place, own, NO_ROWS]);
    await expect(RowsIndex.open(directory, 2)).rejects.toThrow("another controller");
    const reader = await RowsIndex.openForReading(directory);
    expect(await reader.read(6, 1)).toEqual([own]);
    for (const open of [former, index, reader]) await open.close();
  });
});
