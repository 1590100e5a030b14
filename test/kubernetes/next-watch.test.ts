/** What follows the end of a list or a watch. */
import { describe, expect, it } from "vitest";
import { ApiError } from "../../src/kubernetes/api-error.ts";
import { nextWatch, WATCH_TIMING } from "../../src/kubernetes/next-watch.ts";

const end = { error: undefined as unknown, livedMs: 0, failures: 0, chance: 0.5 };
const following = (changed: Partial<typeof end>) => nextWatch({ ...end, ...changed }, WATCH_TIMING);

describe("after the end of a watch", () => {
  it("continues from the same version, soon, if it lived long", () => {
    expect(following({ livedMs: 300_000, failures: 5 })).toEqual({
      listAgain: false,
      pauseMs: 375,
      failures: 0,
    });
  });

  it("never comes back at once, and ever later while watches end early", () => {
    const pauses: number[] = [];
    for (let failures = 0; failures < 12; ) {
      const next = following({ failures, error: new Error("cut off") });
      pauses.push(next.pauseMs);
      failures = next.failures;
    }
    expect(pauses.slice(0, 4)).toEqual([375, 750, 1_500, 3_000]);
    expect(pauses.at(-1)).toBe(22_500);
  });

  it("lists again only if its version is too old", () => {
    expect(following({ error: new ApiError(410, "Expired", "too old") }).listAgain).toBe(true);
    expect(following({ error: new ApiError(500, "InternalError", "no") }).listAgain).toBe(false);
    expect(following({ error: new Error("cut off") }).listAgain).toBe(false);
  });

  it("waits at least as long as the API server asks, and longer by chance", () => {
    const error = new ApiError(429, "TooManyRequests", "wait", 4_000);
    expect(following({ error, chance: 0 }).pauseMs).toBe(4_000);
    expect(following({ error, chance: 1 }).pauseMs).toBe(6_000);
  });

  it("spreads those that were cut off together over half of the pause", () => {
    expect(following({ failures: 3, chance: 0 }).pauseMs).toBe(2_000);
    expect(following({ failures: 3, chance: 1 }).pauseMs).toBe(4_000);
  });
});
