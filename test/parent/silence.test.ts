/** When a child counts as silent: decided by ticks that the parent was awake for. */
import { describe, expect, it } from "vitest";
import {
  CHILD_SILENT_MAX_MS,
  CHILD_START_SILENT_MAX_MS,
  HEARTBEAT_MS,
} from "../../src/contracts/limits/processes.ts";
import { Silence } from "../../src/parent/silence.ts";

/** Ticks on time until the verdict; the seconds that it took. */
function secondsUntilReplaced(silence: Silence, isReady: boolean, fromMs = 0): number {
  for (let nowMs = fromMs + HEARTBEAT_MS; ; nowMs += HEARTBEAT_MS)
    if (silence.tick(nowMs, isReady)) return (nowMs - fromMs) / 1000;
}

describe("a child's silence", () => {
  it("is too long after ten seconds, or later while the child starts", () => {
    const soon = CHILD_SILENT_MAX_MS / 1000;
    expect(secondsUntilReplaced(new Silence(0), true)).toBeGreaterThan(soon);
    expect(secondsUntilReplaced(new Silence(0), true)).toBeLessThanOrEqual(soon + HEARTBEAT_MS / 1000);
    expect(secondsUntilReplaced(new Silence(0), false)).toBeGreaterThan(CHILD_START_SILENT_MAX_MS / 1000);
  });

  it("ends with an answer: a step of nine seconds costs nothing", () => {
    const silence = new Silence(0);
    const ticks = Math.floor(9_000 / HEARTBEAT_MS);
    for (let step = 0; step < 100; step++) {
      for (let tick = 1; tick <= ticks; tick++)
        expect(silence.tick((step * ticks + tick) * HEARTBEAT_MS, true)).toBe(false);
      expect(silence.hasAnswered).toBe(false);
      silence.heard();
      expect(silence.hasAnswered).toBe(true);
    }
  });

  it("does not count while the parent was suspended too", () => {
    const silence = new Silence(0);
    for (let tick = 1; tick <= 5; tick++) silence.tick(tick * HEARTBEAT_MS, true);
    const hourMs = 3_600_000;
    expect(silence.tick(hourMs, true)).toBe(false);
    expect(secondsUntilReplaced(silence, true, hourMs)).toBeGreaterThan(CHILD_SILENT_MAX_MS / 1000);
    const late = new Silence(0);
    for (let tick = 1; tick <= 50; tick++) expect(late.tick(tick * 2.1 * HEARTBEAT_MS, true)).toBe(false);
  });

  it("begins with the second tick without an answer", () => {
    const silence = new Silence(0);
    silence.tick(HEARTBEAT_MS, true);
    expect(silence.hasAnswered).toBe(true);
    silence.tick(2 * HEARTBEAT_MS, true);
    expect(silence.hasAnswered).toBe(false);
  });

  it("counts a tick that is slightly late, but not one that is late by a whole interval", () => {
    const ticks = Math.ceil(CHILD_SILENT_MAX_MS / HEARTBEAT_MS) + 1;
    const verdicts = (apartMs: number) => {
      const silence = new Silence(0);
      return Array.from({ length: ticks }, (_, at) => silence.tick((at + 1) * apartMs, true));
    };
    expect(verdicts(2 * HEARTBEAT_MS - 1).at(-1)).toBe(true);
    expect(verdicts(2 * HEARTBEAT_MS).at(-1)).toBe(false);
  });
});
