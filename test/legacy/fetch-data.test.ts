/** The data of an application: whatever a store lists and sends, this takes bounded memory and disk. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { type DataLimits, fetchData } from "../../src/legacy/fetch-data.ts";
import type { ListedObject, ObjectStore } from "../../src/object-store/object-store.ts";

const LIMITS: DataLimits = { files: 5, pages: 20, bytes: 1000 };

/** A store with these pages, whose objects have this text or never end. */
function storeOf(pages: () => Iterable<string[]>, text: string | "endless" = "a,b\n"): ObjectStore {
  return {
    async *list(): AsyncGenerator<ListedObject[]> {
      for (const page of pages()) yield page.map((path) => ({ path, bytes: undefined }));
    },
    open: async (path: string) => ({
      ...{ path, bytes: Number.POSITIVE_INFINITY, etag: "1", close: async () => {} },
      read: async (into: Buffer, offset: number, position: number, length: number) =>
        text === "endless" ? Math.min(length, 300) : into.write(text.slice(position), offset),
    }),
  } as unknown as ObjectStore;
}

function* endless(page: (n: number) => string[]): Generator<string[]> {
  for (let n = 0; ; n++) yield page(n);
}

describe("the data of an application", () => {
  const root = mkdtempSync(join(tmpdir(), "data-"));
  const directory = join(root, "incoming");
  let wanted = new AbortController();
  beforeEach(() => {
    wanted = new AbortController();
    rmSync(directory, { recursive: true, force: true });
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const fetchFrom = (store: ObjectStore, path = "s3://b/data") =>
    fetchData(store, { path, project: root, directory, signal: wanted.signal }, LIMITS);

  it("is in files of this machine, in the order of their addresses", async () => {
    const files = await fetchFrom(storeOf(() => [["s3://b/data/1"], [], ["s3://b/data/2", "s3://b/data2"]]));
    expect(files).toEqual([join(directory, "0-1"), join(directory, "1-2")]);
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(["a,b\n", "a,b\n"]);
  });

  it.each<[string, (n: number) => string[], string]>([
    [
      "of other objects",
      (n) => [`s3://b/data${n}`],
      "has not ended after 20 pages; name a file, or a directory",
    ],
    ["of nothing", () => [], "has not ended after 20 pages; name a file, or a directory"],
    ["of files", (n) => [`s3://b/data/${n}`], "there are more than 5 files at s3://b/data; combine them"],
    ["of the same file", () => ["s3://b/data/1"], "lists s3://b/data/1 twice at s3://b/data, so its listing"],
  ])("is refused with a cure if the listing is one without end %s", async (_, page, message) => {
    await expect(fetchFrom(storeOf(() => endless(page)))).rejects.toThrow(message);
  });

  it("is refused with a cure if its bytes are too many, and leaves no file", async () => {
    const pages = [["s3://b/data/1", "s3://b/data/2"]];
    await expect(fetchFrom(storeOf(() => pages, "endless"))).rejects.toThrow(
      "the data at s3://b/data has more than 1000 bytes; name fewer files, or store them as Parquet",
    );
    await expect(fetchFrom(storeOf(() => pages, "x".repeat(600)))).rejects.toThrow("more than 1000 bytes");
    expect(existsSync(directory)).toBe(false);
    expect(readdirSync(root)).toEqual([]);
  });

  it("is not fetched further once nobody wants it", async () => {
    const leave = (n: number) => {
      if (n === 3) wanted.abort(new Error("left"));
      return [`s3://b/other${n}`];
    };
    await expect(fetchFrom(storeOf(() => endless(leave)))).rejects.toThrow("left");
    wanted = new AbortController();
    const store = storeOf(() => [["s3://b/data/1"]], "endless");
    const open = store.open.bind(store);
    store.open = async (path) => {
      wanted.abort(new Error("left"));
      return open(path);
    };
    await expect(fetchFrom(store)).rejects.toThrow("left");
    expect(existsSync(directory)).toBe(false);
  });
});
