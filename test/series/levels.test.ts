/** Levels from the few rows in which they changed. */
import { describe, expect, it } from "vitest";
import { isNews, type LevelRow, levelsIn, rowOf, UNKNOWN, withSample } from "../../src/series/levels.ts";

const HOUR_S = 3_600;
/** Noon. */
const NOON_S = Date.UTC(2026, 10, 24, 12) / 1000;
const minute = (at: number) => NOON_S + 60 * at;
const level = (in_flight: number, replicas = 1) => ({ ...UNKNOWN, in_flight, replicas, queue_depth: 0 });
const window = { startS: minute(0), endS: minute(5), stepS: 60 };
const read = (rows: readonly LevelRow[], nowS = minute(60), asked = window) => levelsIn(rows, asked, nowS);

describe("the levels of a window", () => {
  it("hold from a row until the next, in which the highest one counts", () => {
    const peak = withSample(withSample(rowOf(minute(2), level(3)), level(9)), level(1, 2));
    const { in_flight, replicas } = read([rowOf(minute(-100), level(2)), peak]);
    expect(in_flight).toEqual([2, 2, 9, 1, 1]);
    expect(replicas).toEqual([1, 1, 2, 2, 2]);
  });

  it("count at the beginning of a step too, although they fell within it", () => {
    expect(read([rowOf(minute(0), level(5)), rowOf(minute(1), level(0))]).in_flight).toEqual([5, 5, 0, 0, 0]);
  });

  it("are not known before the first row, after a stop, and in the future", () => {
    const rows = [rowOf(minute(1), level(4)), rowOf(minute(3), UNKNOWN)];
    expect(read(rows).replicas).toEqual([null, 1, 1, null, null]);
    expect(read([rowOf(minute(0), level(4))], minute(2)).in_flight).toEqual([4, 4, 4, null, null]);
  });

  it("are not known by the minute where only hours are kept", () => {
    const rows = [rowOf(minute(0), level(4))];
    expect(read(rows, NOON_S + 26 * HOUR_S).in_flight).toEqual([null, null, null, null, null]);
    const hours = { startS: NOON_S, endS: NOON_S + 2 * HOUR_S, stepS: HOUR_S };
    expect(read(rows, NOON_S + 26 * HOUR_S, hours).in_flight).toEqual([4, 4]);
  });
});

describe("a minute", () => {
  it("is news if a level changed in it, also if it came back", () => {
    const before = level(2);
    expect(isNews(before, rowOf(minute(0), level(2)))).toBe(false);
    expect(isNews(before, withSample(rowOf(minute(0), level(3)), level(2)))).toBe(true);
    expect(isNews(before, rowOf(minute(0), level(2, 3)))).toBe(true);
    expect(isNews(before, rowOf(minute(0), UNKNOWN))).toBe(true);
    expect(isNews(UNKNOWN, rowOf(minute(0), UNKNOWN))).toBe(false);
  });
});
