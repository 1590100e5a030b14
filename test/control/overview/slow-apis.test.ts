/** Which of many APIs are asked about, and how often. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { reportFaultsTo } from "../../../src/base/boundary.ts";
import { DURATION_BOUNDS_S } from "../../../src/contracts/reports.ts";
import { SlowApis } from "../../../src/control/overview/slow-apis.ts";

/** The durations of 60 requests that took so long. */
function minute(seconds: number): number[] {
  const buckets = new Array<number>(DURATION_BOUNDS_S.length + 1).fill(0);
  buckets[DURATION_BOUNDS_S.findIndex((bound) => seconds <= bound)] = 60;
  return buckets;
}
const FAST = Array.from({ length: 30 }, () => minute(0.02));
const SLOWER = [...FAST.slice(5), ...Array.from({ length: 5 }, () => minute(0.2))];

describe("slow APIs", () => {
  const names = Array.from({ length: 20 }, (_, at) => `api${at}`);
  const durations = () =>
    new Map(names.map((name) => [name, name === "api3" || name === "api7" ? SLOWER : FAST]));
  /** Reads once a second, and notes whom it asks about. */
  const follow = async (answers: (name: string) => string | undefined, seconds: number) => {
    const asked: string[] = [];
    const slow = new SlowApis(async (name) => {
      asked.push(name);
      return answers(name);
    });
    let known: ReadonlyMap<string, string> = new Map();
    for (let second = 0; second < seconds; second++) {
      known = slow.read(names, durations, second * 1_000);
      await turn();
    }
    return { asked, known, slow };
  };

  it("are those whose requests look slower, and that an explanation calls slow", async () => {
    const { asked, known, slow } = await follow((name) => (name === "api7" ? "It is slow" : undefined), 10);
    expect(asked.slice(0, 2)).toEqual(["api3", "api7"]);
    expect(asked).toHaveLength(3);
    expect([...known]).toEqual([["api7", "It is slow"]]);
    expect([...slow.read(["api3"], durations, 11_000)]).toEqual([]);
  });

  it("are asked about again, and all others in their turn", async () => {
    const { asked } = await follow(() => undefined, 300);
    const times = (name: string) => asked.filter((one) => one === name).length;
    expect([times("api3"), times("api7")]).toEqual([20, 20]);
    for (const name of names) expect(times(name), name).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan(80);
  });

  it("stay known as slow although their durations look as they have for half an hour", async () => {
    const asked: string[] = [];
    const slow = new SlowApis(async (name) => {
      asked.push(name);
      return "slow since long ago";
    });
    const even = () => new Map([["api0", FAST]]);
    for (let second = 0; second < 61; second++) {
      slow.read(["api0"], even, second * 1_000);
      await turn();
    }
    expect(asked).toHaveLength(5);
    expect(slow.read(["api0"], even, 61_000).size).toBe(1);
  });

  it("do not include answers from before a time in which nobody read, until they are asked about again", async () => {
    const { slow } = await follow(
      (name) => (name === "api3" || name === "api7" ? "It is slow" : undefined),
      10,
    );
    const shown = (nowMs: number) => [...slow.read(names, durations, nowMs).keys()];
    expect(shown(100_000)).toEqual(["api3", "api7"]);
    await turn();
    expect(shown(3_600_000)).toEqual([]);
    await turn();
    shown(3_601_000);
    await turn();
    expect(shown(3_602_000).sort()).toEqual(["api3", "api7"]);
  });

  it("are not asked about at once again if an explanation failed", async () => {
    const asked: string[] = [];
    const faults: Error[] = [];
    reportFaultsTo((fault) => faults.push(fault));
    const slow = new SlowApis(async (name) => {
      asked.push(name);
      throw new Error("no database");
    });
    for (let second = 0; second < 15; second++) {
      slow.read(names, durations, second * 1_000);
      await turn();
    }
    expect(asked.slice(0, 2)).toEqual(["api3", "api7"]);
    expect(new Set(asked).size).toBe(asked.length);
    expect(faults).toHaveLength(asked.length);
  });

  it("are asked about one at a time", async () => {
    let open = 0;
    let most = 0;
    const slow = new SlowApis(async () => {
      most = Math.max(most, ++open);
      for (let turns = 0; turns < 5; turns++) await turn();
      open--;
      return undefined;
    });
    for (let second = 0; second < 60; second++) {
      slow.read(names, durations, second * 1_000);
      await turn();
    }
    expect(most).toBe(1);
  });
});
