/** How often a failing issuer is asked depends on its failures, never on the requests of callers. */
import { describe, expect, it } from "vitest";
import { CoolingFetch, KeysUnavailable } from "../../src/access/issuer/cooling-fetch.ts";

const SET = { keys: [] };

describe("an issuer that fails", () => {
  it.each<[string, () => Response]>([
    [
      "is not there",
      () => {
        throw new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });
      },
    ],
    ["answers 500", () => new Response("oh", { status: 500 })],
    ["redirects", () => new Response(null, { status: 302 })],
    ["answers with another document", () => new Response("<html>")],
    ["has no keys", () => Response.json({ error: "none" })],
    ["has very many keys", () => Response.json({ keys: Array.from({ length: 501 }, () => ({})) })],
    ["sends megabytes", () => new Response("x".repeat(2_000_000))],
  ])("is asked less and less often if it %s", async (_, answer) => {
    let nowMs = 0;
    let asked = 0;
    const cooling = new CoolingFetch(
      async () => {
        asked++;
        return answer();
      },
      () => nowMs,
    );
    const times: number[] = [];
    for (; nowMs < 120_000; nowMs += 500) {
      const before = asked;
      await expect(cooling.fetch()).rejects.toBeInstanceOf(KeysUnavailable);
      if (asked > before) times.push(nowMs / 1_000);
    }
    expect(times).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
  });

  it("reports how long it will not be asked, and recovers once it answers", async () => {
    let nowMs = 0;
    let isUp = false;
    const cooling = new CoolingFetch(
      async () => (isUp ? Response.json(SET) : new Response("", { status: 503 })),
      () => nowMs,
    );
    for (const wait of [1_000, 2_000, 4_000]) {
      await expect(cooling.fetch()).rejects.toMatchObject({
        message: "it responds with 503 instead of 200",
        retryAfterS: wait / 1_000,
      });
      await expect(cooling.fetch()).rejects.toMatchObject({ retryAfterS: wait / 1_000 });
      nowMs += wait;
    }
    isUp = true;
    expect(await cooling.fetch()).toEqual(SET);
    isUp = false;
    await expect(cooling.fetch()).rejects.toMatchObject({ retryAfterS: 1 });
  });
});
