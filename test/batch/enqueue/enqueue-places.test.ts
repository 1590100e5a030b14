import { setMaxListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { EnqueuePlaces } from "../../../src/batch/enqueue/enqueue-places.ts";
import { ENQUEUING_MAX, ENQUEUING_OF_AN_API_MAX } from "../../../src/contracts/limits/jobs.ts";

/** Resolves after all due work has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("jobs that enqueue at once", () => {
  /** Jobs that have a slot, in the order in which they got it. */
  function placed() {
    const places = new EnqueuePlaces();
    const held: { api: string; giveBack: () => void }[] = [];
    const want = (api: string, count: number): AbortController => {
      const over = new AbortController();
      setMaxListeners(0, over.signal);
      for (let i = 0; i < count; i++)
        void places.take(api, over.signal).then((giveBack) => giveBack && held.push({ api, giveBack }));
      return over;
    };
    return { places, held, want, apis: () => held.map(({ api }) => api) };
  }

  it("are limited for each API and in total", async () => {
    const { held, want, apis } = placed();
    want("a", 100);
    await settled();
    expect(apis()).toEqual(Array(ENQUEUING_OF_AN_API_MAX).fill("a"));
    for (const api of ["b", "c", "d", "e"]) want(api, 100);
    await settled();
    expect(held.length).toBe(ENQUEUING_MAX);
  });

  it("start in turn, API by API", async () => {
    const { held, want, apis } = placed();
    for (const api of ["a", "b", "c", "d"]) want(api, 100);
    await settled();
    want("e", 2);
    want("f", 1);
    held[0]!.giveBack();
    held[1]!.giveBack();
    held[4]!.giveBack();
    held[5]!.giveBack();
    await settled();
    expect(apis().slice(ENQUEUING_MAX)).toEqual(["a", "e", "b", "f"]);
  });

  it("pass their slots to others, until every job has had one", async () => {
    const { held, want, apis } = placed();
    want("a", 50);
    want("b", 3);
    await settled();
    for (let at = 0; at < held.length; at++) {
      held[at]!.giveBack();
      await settled();
    }
    expect(apis().filter((api) => api === "a").length).toBe(50);
    expect(apis().filter((api) => api === "b").length).toBe(3);
  });

  it("get no slot after they have ended, and take none from others", async () => {
    const { places, held, want, apis } = placed();
    want("a", ENQUEUING_OF_AN_API_MAX);
    const over = want("a", 10);
    want("a", 1);
    await settled();
    expect(places.describe("a")).toBe(
      "the job waits until it may be enqueued: 4 jobs of a are being enqueued, which is the limit",
    );
    over.abort();
    held[0]!.giveBack();
    await settled();
    expect(apis().length).toBe(ENQUEUING_OF_AN_API_MAX + 1);
    const none = new AbortController();
    none.abort();
    expect(await places.take("b", none.signal)).toBeUndefined();
  });
});
