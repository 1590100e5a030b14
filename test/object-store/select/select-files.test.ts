/** Many selections at once: they share the event loop. test/conformance/object-store.test.ts checks what they select. */
import { describe, expect, it } from "vitest";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";
import { selectFiles, selectPages } from "../../../src/object-store/select/select-files.ts";
import { leastLongestTurnMs } from "../../harness/turns.ts";
import { UNWRITTEN } from "../../harness/unwritten-store.ts";

const page = Array.from({ length: 1000 }, (_, i) => ({
  path: `file:///in/${i}${"k".repeat(200)}`,
  bytes: 1,
}));

/** Its listings go on for so many pages; it counts those that are listed at once. */
function listing(pages: number): ObjectStore & { atOnce: number; atMost: number } {
  return {
    atOnce: 0,
    atMost: 0,
    ...UNWRITTEN,
    parallelListings: () => 8,
    open: () => Promise.reject(new Error("is not opened")),
    async *list() {
      this.atMost = Math.max(this.atMost, ++this.atOnce);
      for (let i = 0; i < pages; i++) yield page;
      this.atOnce--;
    },
  };
}

async function fileCount(files: AsyncGenerator<unknown[]>): Promise<number> {
  let count = 0;
  for await (const { length } of files) count += length;
  return count;
}

describe("selections", () => {
  it("passes on long paths a few at a time, and says how far it has come", async () => {
    const long = Array.from({ length: 1_000 }, (_, i) => ({
      path: `file:///in/${String(i).padStart(4, "0")}${"x".repeat(1_000)}`,
      bytes: 1,
    }));
    const store = {
      ...listing(0),
      async *list() {
        yield long;
      },
    };
    const sizes: number[] = [];
    const paths: string[] = [];
    for await (const { files, reached } of selectPages(
      store,
      { store_paths: ["file:///in/"] },
      { sizes: false },
    )) {
      sizes.push(files.length);
      paths.push(...files.map(({ path }) => path));
      if (files.length > 0) expect(reached.path).toBe(paths.at(-1));
    }
    expect(Math.max(...sizes)).toBeLessThan(80);
    expect([paths.length, new Set(paths).size]).toEqual([1_000, 1_000]);
  });

  it("share one slice of each turn of the event loop, however many there are", async () => {
    const store = listing(8);
    const selection = { store_paths: ["file:///in/"], includes: ["**{a,b}*{c,d}*nomatch"] };
    const many = () =>
      Promise.all(
        Array.from({ length: 100 }, () => fileCount(selectFiles(store, selection, { sizes: false }))),
      );
    // A slice of 10 ms each would be a second. The limit is generous because the machine may be busy.
    const longest = await leastLongestTurnMs(300, async () => {
      expect(await many()).toEqual(Array(100).fill(0));
    });
    expect(longest).toBeLessThan(300);
  });

  it("list few prefixes ahead if they are told so", async () => {
    const store_paths = Array.from({ length: 100 }, (_, i) => `file:///${i}/`);
    for (const [parallel, atMost] of [
      [undefined, 8],
      [2, 2],
    ]) {
      const store = listing(1);
      const files = selectFiles(store, { store_paths }, { sizes: false, parallel });
      expect(await fileCount(files)).toBe(100_000);
      expect(store.atMost).toBe(atMost);
    }
  });
});
