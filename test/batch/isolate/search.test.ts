/** The search for guilty items, with batches and guilty items of every kind. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BatchPart, reopenedParts, Search, settledParts } from "../../../src/batch/isolate/search.ts";

/** Runs the search to its end. A part fails if it has a guilty item. Returns the parts, and how many calls it took. */
function isolate(search: Search, isGuilty: (item: number) => boolean) {
  let calls = 0;
  for (let part = search.current; part !== undefined; part = search.current) {
    calls++;
    if (itemsOf(part).some(isGuilty)) search.failed(true);
    else search.succeeded(undefined);
  }
  return { calls, parts: search.all };
}

const itemsOf = ({ first, next }: BatchPart) => Array.from({ length: next - first }, (_, i) => first + i);
const guiltyOf = (parts: readonly BatchPart[]) =>
  parts.filter(({ state }) => state === "guilty").flatMap(itemsOf);

/** A number of items, and some of them. */
const batches = fc
  .integer({ min: 2, max: 300 })
  .chain((n) =>
    fc.tuple(fc.constant(n), fc.uniqueArray(fc.nat(n - 1), { minLength: 1, maxLength: Math.min(n, 40) })),
  );

describe("the search for guilty items", () => {
  it("finds exactly these, in at most 2 * g * ceil(log2(n)) calls, and has each item once", () => {
    fc.assert(
      fc.property(batches, ([n, guilty]) => {
        const { calls, parts } = isolate(Search.begin(n, 1), (item) => guilty.includes(item));
        expect(guiltyOf(parts)).toEqual([...guilty].sort((a, b) => a - b));
        expect(parts.flatMap(itemsOf)).toEqual([...Array(n).keys()]);
        expect(calls).toBeLessThanOrEqual(2 * guilty.length * Math.ceil(Math.log2(n)));
      }),
      { numRuns: 500 },
    );
  });

  it.each([0, 1, 499, 500, 512, 998, 999])("takes at most 20 calls for item %i of 1,000", (guilty) => {
    expect(isolate(Search.begin(1000, 1), (item) => item === guilty).calls).toBeLessThanOrEqual(20);
  });

  it("continues from the parts that were saved, after any number of calls", () => {
    fc.assert(
      fc.property(batches, fc.nat(60), ([n, guilty], stopAfter) => {
        const isGuilty = (item: number) => guilty.includes(item);
        const search = Search.begin(n, 1);
        // As in the database: each changed part replaces the one with its first item.
        const saved = new Map(search.all.map((part) => [part.first, part]));
        let calls = 0;
        for (; calls < stopAfter && search.current !== undefined; calls++) {
          const fails = itemsOf(search.current).some(isGuilty);
          for (const part of fails ? search.failed(true) : search.succeeded(undefined))
            saved.set(part.first, part);
        }
        const inOrder = [...saved.values()].sort((a, b) => a.first - b.first);
        const after = isolate(new Search(inOrder), isGuilty);
        const whole = isolate(Search.begin(n, 1), isGuilty);
        expect(after.parts).toEqual(whole.parts);
        expect(calls + after.calls).toBe(whole.calls);
      }),
    );
  });

  it("finds no guilty item if the parts succeed, such as those of a batch that was too large", () => {
    const { calls, parts } = isolate(Search.begin(1000, 1), () => false);
    expect([calls, guiltyOf(parts)]).toEqual([2, []]);
  });

  it("counts the failed calls that had an item, that of the whole batch included", () => {
    const { parts } = isolate(Search.begin(8, 3), (item) => item === 5);
    expect(parts.map(({ first, next, attempts }) => [first, next, attempts])).toEqual([
      [0, 4, 3],
      [4, 5, 5],
      [5, 6, 6],
      [6, 8, 4],
    ]);
  });

  it("does not split a part that cannot be split", () => {
    const search = Search.begin(4, 1);
    search.failed(false);
    search.succeeded(undefined);
    expect(search.all.map(({ first, next, state }) => [first, next, state])).toEqual([
      [0, 2, "guilty"],
      [2, 4, "good"],
    ]);
  });

  it("says whether a part has a state", () => {
    const search = Search.begin(4, 1);
    expect([search.has("open"), search.has("guilty")]).toEqual([true, false]);
    search.failed(false);
    expect([search.has("open"), search.has("guilty"), search.has("good")]).toEqual([true, true, false]);
  });
});

const part = (first: number, next: number, state: BatchPart["state"], bytes?: number): BatchPart => ({
  ...{ first, next, state, attempts: 2 },
  place: bytes === undefined ? undefined : { file: first + 1, offset: 7, bytes, rows: next - first },
});

describe("the parts of a settled batch", () => {
  it("are merged where good ones are adjacent, and have their places in the joined rows", () => {
    const parts = [
      part(0, 4, "good", 40),
      part(4, 6, "good", 20),
      part(6, 7, "guilty"),
      part(7, 8, "good", 10),
    ];
    const joined = { file: 9, offset: 100, bytes: 70, rows: 7 };
    expect(settledParts(parts, joined)).toEqual([
      { ...part(0, 6, "good"), place: { file: 9, offset: 100, bytes: 60, rows: 6 } },
      part(6, 7, "guilty"),
      { ...part(7, 8, "good"), place: { file: 9, offset: 160, bytes: 10, rows: 1 } },
    ]);
    expect(settledParts(parts, undefined).map(({ first, next, place }) => [first, next, place])).toEqual([
      [0, 6, undefined],
      [6, 7, undefined],
      [7, 8, undefined],
    ]);
  });

  it("are tried again where they are guilty and wanted, adjacent ones together, with no attempt charged", () => {
    const parts = [part(0, 4, "good", 4), part(4, 5, "guilty"), part(5, 6, "guilty"), part(6, 7, "guilty")];
    expect(reopenedParts(parts, ({ first }) => first < 6)).toEqual([
      part(0, 4, "good", 4),
      { ...part(4, 6, "open"), attempts: 0 },
      part(6, 7, "guilty"),
    ]);
  });

  it("stay open if a stop came before their result", () => {
    const parts = [part(0, 2, "open"), part(2, 3, "guilty"), part(3, 4, "guilty")];
    expect(reopenedParts(parts, ({ first }) => first === 2)).toEqual([
      { ...part(0, 3, "open"), attempts: 0 },
      part(3, 4, "guilty"),
    ]);
  });
});
