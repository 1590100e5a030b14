/** Timestamps when the wall clock is set, and the time a job has left. */
import { describe, expect, it } from "vitest";
import { notBefore, timestamp, WallClock } from "../../src/base/clock.ts";
import { JobDeadline } from "../../src/batch/end/job-deadline.ts";

const NOON_MS = Date.parse("2026-01-01T12:00:00Z");
const HOUR_MS = 3_600_000;

function steppable() {
  const at = { wallMs: NOON_MS, monotonicMs: 500 };
  const clock = new WallClock(
    () => Math.floor(at.wallMs),
    () => BigInt(Math.round(at.monotonicMs * 1e6)),
  );
  const pass = (ms: number) => {
    at.wallMs += ms;
    at.monotonicMs += ms;
  };
  return { at, clock, pass, told: () => timestamp(clock.nowNs()) };
}

describe("the wall clock", () => {
  it("advances in nanoseconds, and never goes back unless it is set", () => {
    const { clock, pass } = steppable();
    let before = clock.nowNs();
    for (let n = 0; n < 1000; n++) {
      pass(0.1);
      const now = clock.nowNs();
      expect(now).toBeGreaterThan(before);
      before = now;
    }
  });

  it("follows a step forward and a step back at once", () => {
    const { at, pass, told } = steppable();
    expect(told()).toBe("2026-01-01T12:00:00.000000000Z");
    at.wallMs += 8 * HOUR_MS;
    pass(1000);
    expect(told()).toBe("2026-01-01T20:00:01.000000000Z");
    at.wallMs -= 8 * HOUR_MS;
    pass(1000);
    expect(told()).toBe("2026-01-01T12:00:02.000000000Z");
  });

  it("keeps records in order although the clock was set back", () => {
    const late = "2026-01-01T12:00:00.999999999Z";
    expect(notBefore("2026-01-01T11:00:00.000000000Z", late)).toBe("2026-01-01T12:00:01.000000000Z");
    expect(notBefore("2026-01-01T13:00:00.000000000Z", late)).toBe("2026-01-01T13:00:00.000000000Z");
    expect(notBefore(late, undefined)).toBe(late);
  });
});

describe("a job's deadline", () => {
  const since = timestamp(BigInt(NOON_MS) * 1_000_000n);

  it("is the whole timeout after its submission, even if the wall clock is set", () => {
    const deadline = new JobDeadline(60, since, { wallMs: NOON_MS, monotonicMs: 1000 });
    expect(deadline.isOver(60_999)).toBe(false);
    expect(deadline.isOver(61_000)).toBe(true);
  });

  it("counts the time without a controller by the wall clock", () => {
    const deadline = new JobDeadline(60, since, { wallMs: NOON_MS + 45_000, monotonicMs: 0 });
    expect(deadline.isOver(14_999)).toBe(false);
    expect(deadline.isOver(15_000)).toBe(true);
    expect(new JobDeadline(60, since, { wallMs: NOON_MS + 61_000, monotonicMs: 0 }).isOver(0)).toBe(true);
  });

  it("is never later than the timeout from now, even if the record is from the future", () => {
    const deadline = new JobDeadline(60, since, { wallMs: NOON_MS - HOUR_MS, monotonicMs: 0 });
    expect(deadline.isOver(59_999)).toBe(false);
    expect(deadline.isOver(60_000)).toBe(true);
  });

  it("never comes for a job without a timeout", () => {
    expect(new JobDeadline(null, since, { wallMs: NOON_MS + HOUR_MS, monotonicMs: 0 }).isOver(1e15)).toBe(
      false,
    );
  });
});
