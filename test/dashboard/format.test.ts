import { describe, expect, it } from "vitest";
import { bytes, counted, percent, rate, short, whole } from "../../src/dashboard/format/numbers.ts";
import { ago, duration, localMinutes, utcTime } from "../../src/dashboard/format/times.ts";

describe("numbers of the dashboard", () => {
  it.each([
    [0, "0 s"],
    [0.0004, "0.4 ms"],
    [0.0123, "12 ms"],
    [0.35, "350 ms"],
    [0.9996, "1.0 s"],
    [4.23, "4.2 s"],
    [59.4, "59 s"],
    [59.6, "1 min"],
    [200, "3 min 20 s"],
    [7500, "2 h 5 min"],
    [86_400, "1 d"],
    [273_600, "3 d 4 h"],
  ])("says %d seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));

  it.each([
    [0, "0 %"],
    [0.0001, "<0.1 %"],
    [0.034, "3.4 %"],
    [0.5, "50 %"],
    [0.9999, ">99.9 %"],
    [1, "100 %"],
  ])("says a share of %d as %s, so that only all is 100 %%", (share, text) =>
    expect(percent(share)).toBe(text),
  );

  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [150 * 1024 ** 2, "150 MiB"],
    [2 ** 40, "1 TiB"],
  ])("says %d bytes as %s", (value, text) => expect(bytes(value)).toBe(text));

  it("says rates and counts shortly, but whole numbers whole", () => {
    expect([0, 0.001, 0.5, 2.55, 140, 12_400, 3.1e6].map(rate)).toEqual([
      "0",
      "<0.01",
      "0.50",
      "2.5",
      "140",
      "12.4k",
      "3.1M",
    ]);
    expect(short(999_600)).toBe("1M");
    expect([whole(999), whole(1000), whole(-12_345)]).toEqual(["999", "1,000", "-12,345"]);
    expect(whole(1_204_311)).toBe("1,204,311");
    expect(whole("12345678901234567890")).toBe("12345678901234567890");
    expect([counted(1, "batch", "batches"), counted(2, "batch", "batches")]).toEqual([
      "1 batch",
      "2 batches",
    ]);
  });

  it("says the times in a sentence in local time, to the minute or second as they are", () => {
    const at = new Date(2026, 10, 28, 14, 5, 9);
    const iso = at.toISOString();
    const text = `from ${iso.slice(0, 16)}Z, rolled back at ${iso.slice(0, 19)}Z`;
    expect(localMinutes(text, at.getTime() + 60_000)).toBe("from 14:05, rolled back at 14:05:09");
  });

  it("says how long ago, and the time in UTC", () => {
    const at = "2026-11-24T08:15:03.123456789Z";
    const nowMs = Date.parse("2026-11-24T08:17:00Z");
    expect(ago(at, nowMs)).toBe("1 min ago");
    expect(ago("2026-11-24T08:16:58Z", nowMs)).toBe("just now");
    expect(utcTime(at)).toBe("2026-11-24 08:15:03 UTC");
  });
});
