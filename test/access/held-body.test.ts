import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { collect, HeldBody } from "../../src/access/held-body.ts";
import { BODY_PACE_MS, SMALL_BODY_BYTES } from "../../src/contracts/limits/requests.ts";

const CHUNKS = 100_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function held(): HeldBody {
  const budget = new BodyBudget({ most: 2 ** 30, forSmall: 0, smallBytes: SMALL_BODY_BYTES });
  return new HeldBody(budget, { sender: "a", api: "a" });
}

describe("the body of a request", () => {
  it("takes little more memory than its bytes if it comes in many small chunks", async () => {
    let grown = 0;
    async function* bytes() {
      const before = heapBytes();
      for (let sent = 0; sent < CHUNKS; sent++) yield Buffer.of(sent % 256);
      grown = heapBytes() - before;
    }
    const parts = await collect(bytes(), held(), undefined, () => {});
    expect(Buffer.concat(parts)).toEqual(Buffer.from(Array.from({ length: CHUNKS }, (_, i) => i % 256)));
    // Blocks of 4 KiB. It was 57 MB.
    expect(parts.length).toBeLessThan(50);
    expect(grown).toBeLessThan(CHUNKS * 50);
  });
});

describe("a small body", () => {
  it("reserves the received bytes, not the announced ones", async () => {
    const body = held();
    const seen: number[] = [];
    async function* bytes() {
      for (let n = 0; n < 3; n++) {
        seen.push(body.bytes);
        yield Buffer.alloc(10);
      }
    }
    await collect(bytes(), body, SMALL_BODY_BYTES, () => {});
    expect([...seen, body.bytes]).toEqual([0, 10, 20, 30]);
  });
});

describe("a large body that stalls", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is refused while Quern waits for its next chunk, and a later chunk has no effect", async () => {
    let come: () => void = () => {};
    const later = new Promise<void>((resolve) => {
      come = resolve;
    });
    async function* stalling() {
      yield Buffer.alloc(10);
      await later;
      throw new Error("the connection is gone");
    }
    const collected = collect(stalling(), held(), 2 * SMALL_BODY_BYTES, () => {});
    const refused = expect(collected).rejects.toMatchObject({ code: "body_too_slow" });
    // The first period has ten bytes, fewer than a fortieth.
    await vi.advanceTimersByTimeAsync(BODY_PACE_MS);
    await refused;
    come();
    await vi.advanceTimersByTimeAsync(0);
  });
});
