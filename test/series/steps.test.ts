/** The window of a request for series. */
import { describe, expect, it } from "vitest";
import { timesOf, windowOf } from "../../src/series/steps.ts";

/** A Tuesday, 12:34:56 UTC. */
const NOW_S = Date.UTC(2026, 10, 24, 12, 34, 56) / 1000;
const HOUR_S = 3_600;
const ago = (seconds: number) => String(NOW_S - seconds);

describe("the window of a series", () => {
  it("is the last hour in minutes, with the one in progress, if nothing is asked for", () => {
    const window = windowOf({}, NOW_S);
    expect(window).toEqual({ startS: NOW_S - HOUR_S - 56, endS: NOW_S + 4, stepS: 60 });
    expect(timesOf(window)).toHaveLength(61);
    expect(timesOf(window).at(-1)).toBe(NOW_S - 56);
  });

  it.each([
    ["1 h", 1, 60],
    ["6 h", 6, 60],
    ["24 h", 24, 300],
    ["25 h, of which the first is kept by the hour only", 26, HOUR_S],
    ["14 days", 14 * 24, HOUR_S],
    ["60 days", 60 * 24, 4 * HOUR_S * 1.5],
  ])("has a step that fits %s", (_, hours, stepS) => {
    expect(windowOf({ from: ago(hours * HOUR_S) }, NOW_S).stepS).toBe(stepS);
  });

  it("begins and ends at whole steps, given as timestamps or Unix seconds", () => {
    const asked = { from: "2026-11-24T08:01:30Z", to: "2026-11-24T09:00:00+01:00", step: "300" };
    expect(() => windowOf(asked, NOW_S)).toThrow(
      /^from must be before to \(from is 2026-11-24T08:01:30.000Z/,
    );
    const window = windowOf({ ...asked, to: "2026-11-24T10:30:00+01:00" }, NOW_S);
    expect(timesOf(window)[0]).toBe(Date.UTC(2026, 10, 24, 8, 0) / 1000);
    expect(window.endS).toBe(Date.UTC(2026, 10, 24, 9, 30) / 1000);
    const lately = windowOf({ from: "2h", to: "30m" }, NOW_S);
    expect(lately).toEqual(windowOf({ from: ago(2 * HOUR_S), to: ago(HOUR_S / 2) }, NOW_S));
  });

  it.each([
    [
      { step: "61" },
      'step must be one of 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 seconds (got "61")',
    ],
    [
      { from: "yesterday" },
      'from must be a timestamp such as 2026-11-24T08:00:00Z, Unix seconds, or a duration before now such as 24h (got "yesterday")',
    ],
    [{ to: "2026-13-01T00:00:00Z" }, "to must be a timestamp"],
    [{ to: "1e9" }, "to must be a timestamp"],
    [
      { from: ago(14 * 24 * HOUR_S), step: "60" },
      "the range has 20161 steps, and at most 1500 are allowed: use a step of at least 900, or a shorter range",
    ],
    [
      { from: "0" },
      "use a step of at least 86400, or a shorter range".replace(
        "use a step of at least 86400, or",
        "ask for",
      ),
    ],
  ])("refuses %j, and says what is allowed", (query, message) => {
    expect(() => windowOf(query, NOW_S)).toThrow(message);
  });
});
