/** The clock of all runs of jobs. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RunTicker } from "../../src/batch/run-ticker.ts";

describe("the clock of all jobs", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const [SOON, NEVER] = [{ endsMs: 0 }, { endsMs: Number.POSITIVE_INFINITY }];
  const unexpected = (error: Error) => {
    throw error;
  };

  it("is one timer for any number of jobs, and none without a job", async () => {
    const ticker = new RunTicker();
    const ticks = [0, 0, 0];
    const runs = ticks.map((_, i) => ({
      rests: false,
      deadline: SOON,
      tick: () => void ticks[i]!++,
      unexpected,
    }));
    for (const run of runs) ticker.add(run);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(ticks).toEqual([4, 4, 4]);
    ticker.remove(runs[1]!);
    await vi.advanceTimersByTimeAsync(1000);
    expect(ticks).toEqual([8, 4, 8]);
    for (const run of [...runs, ...runs]) ticker.remove(run);
    expect(vi.getTimerCount()).toBe(0);
    ticker.add(runs[0]!);
    expect(vi.getTimerCount()).toBe(1);
  });

  it("ticks every two seconds for a job that rests, until it wakes", async () => {
    const ticker = new RunTicker();
    let ticks = 0;
    const run = { rests: true, deadline: SOON, tick: () => void ticks++, unexpected };
    ticker.add(run);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(ticks).toBe(2);
    run.rests = false;
    ticker.wake(run);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(ticks).toBe(6);
    ticker.remove(run);
  });

  it("ticks once in ten seconds for a job that rests and has no deadline, unless it wakes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "performance"] });
    const ticker = new RunTicker();
    let ticks = 0;
    const run = { rests: true, deadline: NEVER, tick: () => void ticks++, unexpected };
    ticker.add(run);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ticks).toBe(6);
    run.rests = false;
    ticker.wake(run);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(ticks).toBe(10);
    ticker.remove(run);
  });

  it("finds by itself that a job rests, or rests no longer", async () => {
    const ticker = new RunTicker();
    let ticks = 0;
    const run = { rests: false, deadline: SOON, tick: () => void ticks++, unexpected };
    ticker.add(run);
    await vi.advanceTimersByTimeAsync(1_000);
    run.rests = true;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(ticks).toBe(6);
    run.rests = false;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(ticks).toBeGreaterThan(14);
    ticker.remove(run);
  });

  it("never ticks for a job that was removed, even if that wakes", async () => {
    const ticker = new RunTicker();
    let ticks = 0;
    const run = { rests: true, deadline: SOON, tick: () => void ticks++, unexpected };
    ticker.add(run);
    ticker.remove(run);
    ticker.wake(run);
    await ticker.tickAll();
    expect(ticks).toBe(0);
  });

  it("passes an exception to its job, and lets the others tick", async () => {
    const ticker = new RunTicker();
    const faults: string[] = [];
    let ticks = 0;
    const broken = {
      rests: false,
      deadline: SOON,
      tick: () => unexpected(new Error("broken")),
      unexpected: (e: Error) => faults.push(e.message),
    };
    ticker.add(broken);
    ticker.add({ rests: false, deadline: SOON, tick: () => ticks++, unexpected });
    await ticker.tickAll();
    await ticker.tickAll();
    expect([faults, ticks]).toEqual([["broken", "broken"], 2]);
  });

  it("is cut into slices, so that other work runs while thousands of jobs tick", async () => {
    const ticker = new RunTicker();
    let ticks = 0;
    const slow = () => {
      const endMs = performance.now() + 2;
      while (performance.now() < endMs);
      ticks++;
    };
    for (let i = 0; i < 20; i++) ticker.add({ rests: false, deadline: SOON, tick: slow, unexpected });
    const all = ticker.tickAll();
    const overlapping = ticker.tickAll();
    let seen = 0;
    setImmediate(() => {
      seen = ticks;
    });
    await Promise.all([all, overlapping]);
    expect(seen).toBeGreaterThan(0);
    expect(seen).toBeLessThan(20);
    expect(ticks).toBe(20);
  });
});
