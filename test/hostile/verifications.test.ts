/** Forty verifications at once, as many as may be open, of rows as short as they can be: they share no turn. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { OutputCheck } from "../../src/batch/results/verify.ts";
import type { ObjectStore, OpenObject } from "../../src/object-store/object-store.ts";
import { leastLongestTurnMs } from "../harness/turns.ts";

const ROW = (batch: number) => `{"batch_index":${batch}}\n`;
const ROWS = 100_000;
const CONTENT = Buffer.from(Array.from({ length: ROWS }, (_, batch) => ROW(batch)).join(""));
const CHECKS = 40;

/** Reads of a store that all return in one turn. */
function storeOf(content: Buffer): ObjectStore {
  const read: OpenObject["read"] = async (into, offset, position, length) => {
    await new Promise((resolve) => setImmediate(resolve));
    return content.copy(into, offset, position, position + length);
  };
  return { open: async () => ({ read, close: async () => {} }) } as unknown as ObjectStore;
}

describe("forty verifications", () => {
  it("look at what they have read in turns of their own", async () => {
    const part = {
      ...{ name: "part-0", rows: ROWS, bytes: CONTENT.length, unpacked_bytes: null },
      sha256: createHash("sha256").update(CONTENT).digest("hex"),
    };
    const store = storeOf(CONTENT);
    const check = async () => {
      const found = new OutputCheck(store, "").part(part);
      for (;;) {
        const { value, done } = await found.next();
        if (done) return value.differences;
      }
    };
    const longestMs = await leastLongestTurnMs(100, async () => {
      for (const differences of await Promise.all(Array.from({ length: CHECKS }, check)))
        expect(differences).toEqual([]);
    });
    expect(longestMs).toBeLessThan(100);
  });
});
