/** Large pages of one store are read a few at a time; small ones and those of other stores do not wait for them. */
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  STORE_LARGE_PAGES_MAX,
  STORE_PAGE_BYTES_MAX,
  STORE_SMALL_PAGE_BYTES,
} from "../../../src/contracts/limits/stores.ts";
import { StorePages } from "../../../src/object-store/listing/store-pages.ts";
import { eventually } from "../../harness/eventually.ts";

describe("pages of a store", () => {
  const large = Buffer.alloc(STORE_SMALL_PAGE_BYTES + 1, "x");
  const lengthOf = async (text: string) => text.length;
  /** A page that has begun to arrive. */
  const begun = (bytes: Buffer) => {
    const body = new PassThrough({ highWaterMark: 64 * 1024 });
    body.write(bytes);
    return body;
  };
  /** Resolves once all that may be read now was read. */
  const settled = async () => {
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  it("that are large wait for each other, and no others wait for them", async () => {
    const [pages, others] = [new StorePages(STORE_PAGE_BYTES_MAX), new StorePages(STORE_PAGE_BYTES_MAX)];
    const stuck = Array.from({ length: STORE_LARGE_PAGES_MAX }, () => begun(large));
    const reading = stuck.map((body) => pages.read(body, lengthOf));
    const next = begun(large);
    let isNextRead = false;
    const nextReading = pages.read(next.end(), lengthOf).then((length) => {
      isNextRead = true;
      return length;
    });
    expect(await pages.read(begun(Buffer.from("small")).end(), lengthOf)).toBe(5);
    expect(await others.read(begun(large).end(), lengthOf)).toBe(large.length);
    await settled();
    expect(isNextRead).toBe(false);
    stuck[0]!.end();
    expect(await nextReading).toBe(large.length);
    for (const body of stuck) body.end();
    expect(await Promise.all(reading)).toEqual(stuck.map(() => large.length));
  });

  it("give their place back if they break off, are too long or cannot be parsed", async () => {
    const pages = new StorePages(STORE_PAGE_BYTES_MAX);
    for (let i = 0; i < 2 * STORE_LARGE_PAGES_MAX; i++) {
      const broken = begun(large);
      const reading = pages.read(broken, lengthOf);
      setImmediate(() => broken.destroy(new Error("broken off")));
      await expect(reading).rejects.toThrow("broken off");
      const long = begun(Buffer.alloc(STORE_PAGE_BYTES_MAX + 1));
      await expect(pages.read(long, lengthOf)).rejects.toThrow("longer than");
      await eventually("the rest is dropped", () => long.destroyed);
      const unread = pages.read(begun(large).end(), () => Promise.reject(new Error("not a listing")));
      await expect(unread).rejects.toThrow("not a listing");
    }
    expect(await pages.read(begun(large).end(), lengthOf)).toBe(large.length);
  });
});
