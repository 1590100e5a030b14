/** Regular work falls on the same instants, and goes on after an exception. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { reportFaultsTo } from "../../../src/base/boundary.ts";
import { every, nextDueMs } from "../../../src/base/loop/pulse.ts";

describe("when work is due", () => {
  test.each([
    [1_000, 5_000, 6_000],
    [1_000, 5_499, 6_000],
    [1_000, 5_501, 7_000],
    [2_000, 5_000, 6_000],
    [2_000, 5_500, 8_000],
    [250, 5_010.5, 5_250],
  ])("every %d ms, after %d: at %d", (everyMs, nowMs, dueMs) => {
    expect(nextDueMs(everyMs, nowMs)).toBe(dueMs);
  });
});

describe("regular work", () => {
  let ends: (() => void)[];

  beforeEach(() => {
    vi.useFakeTimers();
    ends = [];
  });

  afterEach(() => {
    for (const end of ends) end();
    vi.useRealTimers();
    reportFaultsTo(() => {});
  });

  /** The times at which it was done, until the clock has gone on by `forMs`. */
  async function timesOf(periods: number[], forMs: number): Promise<number[][]> {
    const times = periods.map(() => [] as number[]);
    const startMs = performance.now();
    for (const [at, ms] of periods.entries()) {
      // They begin at different times.
      await vi.advanceTimersByTimeAsync(at * 37);
      ends.push(every(ms, "a test", () => times[at]!.push(performance.now() - startMs)));
    }
    await vi.advanceTimersByTimeAsync(forMs);
    return times;
  }

  test("of one period is done together, and of a longer one at the same time as some of it", async () => {
    const [one, other, long] = await timesOf([1_000, 1_000, 2_000], 10_000);
    expect(one!.length).toBeGreaterThanOrEqual(9);
    expect(other!.every((time) => one!.includes(time))).toBe(true);
    expect(long!.every((time) => one!.includes(time))).toBe(true);
    expect(long!.length).toBeGreaterThanOrEqual(4);
  });

  test("is done again after an exception, which is reported, and the rest is done too", async () => {
    const faults: string[] = [];
    reportFaultsTo((error, unit) => faults.push(`${unit}: ${error.message}`));
    ends.push(
      every(1_000, "the broken one", () => {
        throw new Error("broken");
      }),
    );
    const [times] = await timesOf([1_000], 5_000);
    expect(times!.length).toBeGreaterThanOrEqual(4);
    expect(faults.length).toBe(times!.length);
    expect(faults[0]).toBe("the broken one: broken");
  });

  test("ends when it is told to, also while it is done, and then no timer is left", async () => {
    let count = 0;
    const end = every(1_000, "a test", () => {
      count++;
      end();
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(count).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("work that takes longer than its period is due at once: Node warns of a time in the past", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  const endOther = every(20, "other work", () => {});
  await new Promise<void>((resolve) => {
    let times = 0;
    const end = every(20, "slow work", () => {
      const endMs = performance.now() + 60;
      while (performance.now() < endMs);
      if (++times < 3) return;
      end();
      resolve();
    });
  });
  endOther();
  const waits = timers.mock.calls.map(([, ms]) => ms ?? 0);
  timers.mockRestore();
  expect(waits.filter((ms) => ms < 0)).toEqual([]);
});
