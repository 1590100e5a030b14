/** How long a worker may start, and when a worker of a job is replaced. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { processAgeMs, processStartTime } from "../../src/base/process-identity.ts";
import { StartWatch, Wear } from "../../src/engine/lifetime.ts";
import type { WorkerFault } from "../../src/protocol/messages.ts";
import { LONG_LIFE } from "../harness/lifetime.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the start of a worker", () => {
  function watch(ageMs = 0) {
    const seen: (number | string)[] = [];
    const start = new StartWatch({ ms: 25_000, text: "25s" }, ageMs, {
      onLong: (seconds) => seen.push(seconds),
      onTimeout: ({ type }: WorkerFault) => seen.push(type),
    });
    return { seen, start };
  }

  it("is told every ten seconds, and ends at its limit", () => {
    const { seen } = watch();
    vi.advanceTimersByTime(24_999);
    expect(seen).toEqual([10, 20]);
    vi.advanceTimersByTime(60_000);
    expect(seen).toEqual([10, 20, "StartTimeout"]);
  });

  it("counts from the start of the process, also if another controller saw that", () => {
    const { seen } = watch(20_000);
    vi.advanceTimersByTime(5_000);
    expect(seen).toEqual(["StartTimeout"]);
    const { seen: late } = watch(40_000);
    vi.advanceTimersByTime(0);
    expect(late).toEqual(["StartTimeout"]);
  });

  it("is told no more once the worker is ready", () => {
    const { seen, start } = watch();
    vi.advanceTimersByTime(12_000);
    start.end();
    vi.advanceTimersByTime(60_000);
    expect(seen).toEqual([10]);
  });
});

describe("a worker of a job", () => {
  it("gets as many batches as it may have, and any number without a limit", () => {
    expect(new Wear({ ...LONG_LIFE, maxRequests: 3 }).leftAfter(2)).toBe(1);
    expect(new Wear({ ...LONG_LIFE, maxRequests: 3 }).leftAfter(3)).toBe(0);
    expect(new Wear(LONG_LIFE).leftAfter(1e9)).toBe(Number.POSITIVE_INFINITY);
  });

  it("gets no batch once it is too old, except its first", () => {
    const wear = new Wear({ ...LONG_LIFE, maxAgeMs: 1_000 });
    expect(wear.leftAfter(5)).toBeGreaterThan(0);
    vi.advanceTimersByTime(1_000);
    expect(wear.leftAfter(5)).toBe(0);
    expect(wear.leftAfter(0)).toBeGreaterThan(0);
  });
});

it("the age of a process is told by its start", () => {
  vi.useRealTimers();
  const ageMs = processAgeMs(processStartTime(process.pid)!)!;
  expect(Math.abs(ageMs - process.uptime() * 1_000)).toBeLessThan(1_000);
  expect(processAgeMs("no number")).toBeUndefined();
});
