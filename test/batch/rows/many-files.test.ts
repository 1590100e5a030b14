/** A spool of many files, as many deaths of workers leave it: few of them are open at once. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { writePart } from "../../../src/batch/output/part-writer.ts";
import { RowsIndex } from "../../../src/batch/rows/rows-by-batch.ts";
import { Spool } from "../../../src/batch/rows/spool.ts";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";

const opening = vi.hoisted(() => ({ failures: [] as string[] }));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open: typeof real.open = async (path, flags, mode) => {
    const code = flags === "r" ? opening.failures.shift() : undefined;
    if (code !== undefined) throw Object.assign(new Error(`${code}: open`), { code });
    return real.open(path, flags, mode);
  };
  return { ...real, open };
});

const FILES = 200;
let directory: string;
let spool: Spool;
const waits: unknown[] = [];

beforeEach(() => {
  waits.length = 0;
  directory = mkdtempSync(join(tmpdir(), "quern-many-"));
  const diskWait = { onWait: (error: unknown) => waits.push(error), signal: new AbortController().signal };
  spool = Spool.open(directory, { lastFile: 0, epoch: 1 }, diskWait);
});
afterEach(async () => {
  await spool.close();
  rmSync(directory, { recursive: true });
});

/** One batch in each file. */
async function filled(files: number): Promise<RowsIndex> {
  const index = await RowsIndex.open(directory, 1);
  for (let batchIndex = 0; batchIndex < files; batchIndex++) {
    const stream = spool.stream(() => {});
    stream.append(Buffer.from(`${1000 + batchIndex}\n`));
    const place = stream.take({ rows: 1, bytes: 5 });
    await spool.end(stream);
    await index.write([{ batchIndex, place }], place.file);
  }
  return index;
}

function openFiles(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(directory);
    } catch {
      return false;
    }
  }).length;
}

/** Returns the part, and how many files were open at once. */
async function written(index: RowsIndex, files: number): Promise<{ text: string; most: number }> {
  let [text, most] = ["", 0];
  const write = async (chunk: Uint8Array) => {
    text += Buffer.from(chunk).toString();
    most = Math.max(most, openFiles());
  };
  const upload = { write, complete: async () => ({ etag: "1" }), abort: async () => {} };
  const store = { create: async () => upload } as unknown as ObjectStore;
  const place = { store, prefix: "s3://bucket/out/", compression: "none" as const };
  await writePart({ ...place, spool, index }, { first: 0, next: files } as never, "part");
  await index.close();
  return { text, most };
}

const expected = (files: number) => Array.from({ length: files }, (_, i) => `${1000 + i}\n`).join("");

it("is written as a part while ten of its files are open at most", async () => {
  const { text, most } = await written(await filled(FILES), FILES);
  expect(text).toBe(expected(FILES));
  // Eight of rows, and the index.
  expect(most).toBeLessThanOrEqual(10);
});

it("is read by many at once, each of them from its file", async () => {
  await (await filled(40)).close();
  const files = (await spool.files()).sort((a, b) => a - b);
  const texts = await Promise.all(
    [...files, ...files].map(async (file) => {
      const into = Buffer.alloc(5);
      await spool.read(file, 0, into, 5);
      return String(into);
    }),
  );
  expect(texts.join("")).toBe(expected(40).repeat(2));
  await spool.read(files[0]!, 0, Buffer.alloc(5), 5);
  expect(openFiles()).toBeLessThanOrEqual(8);
});

it.each(["EMFILE", "ENFILE"])("waits for files that the machine lacks: %s", async (code) => {
  const index = await filled(3);
  opening.failures.push(code);
  expect((await written(index, 3)).text).toBe(expected(3));
  expect(waits).toMatchObject([{ code }]);
});
