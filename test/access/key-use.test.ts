/** When keys were last used: what is told, kept and saved. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { KeyUse } from "../../src/access/key-use.ts";
import { openLog } from "../../src/base/log.ts";
import { ControllerMessages, UsedKeys } from "../../src/gateway/report-to-controller.ts";

const MINUTE_MS = 60_000;
const at = (minute: number) => `1970-01-01T00:${String(minute).padStart(2, "0")}:00.000000000Z`;

describe("the last use of keys", () => {
  /** A failing database, as long as `isDown`. */
  const opened = () => {
    const saved: [string[], string][] = [];
    const state = { saved, isDown: false, tries: 0 };
    const save = async (ids: readonly string[], time: string) => {
      state.tries++;
      if (state.isDown) throw new Error("down");
      saved.push([[...ids], time]);
    };
    const use = new KeyUse({ save, log: openLog("test", "/dev/null") });
    for (const id of ["a", "b", "new"]) use.know(id, id === "b" ? at(5) : null);
    return { use, state };
  };

  it("is the newest that any gateway tells, and only of keys that are known", async () => {
    const { use, state } = opened();
    use.note([
      ["a", 3 * MINUTE_MS],
      ["a", 2 * MINUTE_MS],
      ["b", 4 * MINUTE_MS],
      ["admin-token", 3 * MINUTE_MS],
    ]);
    expect(["a", "b", "new", "admin-token"].map((id) => use.lastOf(id))).toEqual([at(3), at(5), null, null]);
    await use.stop();
    expect(state.saved).toEqual([[["a"], at(3)]]);
  });

  it("is saved later if the database fails", async () => {
    const { use, state } = opened();
    use.note([["a", MINUTE_MS]]);
    state.isDown = true;
    await use.stop();
    use.note([["b", 7 * MINUTE_MS]]);
    state.isDown = false;
    await use.stop();
    expect(new Map(state.saved.map(([ids, time]) => [time, ids]))).toEqual(
      new Map([
        [at(1), ["a"]],
        [at(7), ["b"]],
      ]),
    );
  });

  it("of many keys is saved with few statements, and with one if the database is down", async () => {
    const { use, state } = opened();
    for (let i = 0; i < 1_200; i++) {
      use.know(`k-${i}`, null);
      use.note([[`k-${i}`, MINUTE_MS]]);
    }
    state.isDown = true;
    await use.stop();
    expect([state.tries, state.saved]).toEqual([1, []]);
    state.isDown = false;
    await use.stop();
    expect(state.saved.map(([ids]) => ids.length)).toEqual([500, 500, 200]);
  });
});

describe("a gateway", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: 10 * MINUTE_MS + 5 }));
  afterEach(() => vi.useRealTimers());

  /** A controller that is not there as long as `isGone`. */
  class Told extends ControllerMessages {
    keys: unknown[] = [];
    isGone = false;
    override tell(_path: string, otherwise: () => void, body = ""): void {
      if (this.isGone) otherwise();
      else this.keys.push(...(JSON.parse(body) as { keys: unknown[] }).keys);
    }
  }

  it("tells of each key once a minute", () => {
    const told = new Told("");
    const used = new UsedKeys(told);
    const useOften = () => {
      for (let i = 0; i < 3; i++) {
        used.note("a");
        used.send();
      }
    };
    useOften();
    expect(told.keys).toEqual([["a", 10 * MINUTE_MS]]);
    vi.setSystemTime(11 * MINUTE_MS);
    used.send();
    useOften();
    expect(told.keys).toEqual([
      ["a", 10 * MINUTE_MS],
      ["a", 11 * MINUTE_MS],
    ]);
  });

  it("tells the minute of the use, also before it has noticed that a minute has begun", () => {
    const told = new Told("");
    const used = new UsedKeys(told);
    vi.setSystemTime(11 * MINUTE_MS + 200);
    used.note("a");
    used.send();
    expect(told.keys).toEqual([["a", 11 * MINUTE_MS]]);
  });

  it("tells the next controller what none has heard", () => {
    const told = new Told("");
    const used = new UsedKeys(told);
    told.isGone = true;
    used.note("a");
    used.send();
    vi.setSystemTime(12 * MINUTE_MS);
    used.send();
    told.isGone = false;
    used.send();
    expect(told.keys).toEqual([["a", 10 * MINUTE_MS]]);
  });

  it("tells of many keys in several messages", () => {
    const told = new Told("");
    const used = new UsedKeys(told);
    for (let i = 0; i < 1_500; i++) used.note(`k-${i}`);
    used.send();
    expect(told.keys.length).toBe(1_000);
    used.send();
    expect(told.keys.length).toBe(1_500);
  });
});
