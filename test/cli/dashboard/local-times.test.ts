/** src/cli/dashboard/local-times.ts: what people type and read is the time of their own clock. */
import { expect, it } from "vitest";
import { asUtc, inLocalCommand, inLocalTime } from "../../../src/cli/dashboard/local-times.ts";

/** This machine's clock said so. */
const clock = (text: string) => new Date(text).getTime();
const nowMs = clock("2026-11-28T14:30:00");
const utc = (text: string) => new Date(text).toISOString();
const minuteOf = (text: string) => `${utc(text).slice(0, 16)}Z`;

it.each([
  ["14:05", "2026-11-28T14:05:00"],
  ["14:30", "2026-11-28T14:30:00"],
  ["9:07", "2026-11-28T09:07:00"],
  ["14:31", "2026-11-27T14:31:00"],
  ["23:59:30", "2026-11-27T23:59:30"],
  ["2026-11-26 08:00", "2026-11-26T08:00:00"],
  ["2026-11-26T08:00", "2026-11-26T08:00:00"],
])("%s is %s of the local clock", (text, local) => {
  expect(asUtc(text, nowMs)).toBe(utc(local));
});

it.each(["30m", "2026-11-26T08:00:00Z", "1764331500", "24:05", "12:60", "noon"])(
  "%s goes to the server as it is",
  (text) => {
    expect(asUtc(text, nowMs)).toBe(text);
  },
);

it("shows the server's minutes in local time, with the date if it was another day", () => {
  const text = `from ${minuteOf("2026-11-28T14:05")} to ${minuteOf("2026-11-27T23:59")}`;
  expect(inLocalTime(text, nowMs)).toBe("from 14:05 to 2026-11-27 23:59");
  expect(inLocalTime(`at ${utc("2026-11-28T14:05:09").slice(0, 19)}Z`, nowMs)).toBe("at 14:05:09");
  expect(inLocalCommand(`--at ${minuteOf("2026-11-28T14:05")}`, nowMs)).toBe("--at 14:05");
  expect(inLocalCommand(`--at ${minuteOf("2026-11-27T14:05")}`, nowMs)).toBe('--at "2026-11-27 14:05"');
  const redrive = `quern job redrive a --error 'no data for ${minuteOf("2026-11-28T14:05")}'`;
  expect(inLocalCommand(redrive, nowMs)).toBe(redrive);
});
