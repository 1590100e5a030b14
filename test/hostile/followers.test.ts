/** A hundred followers of a log, as many as a key may have. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readLogLines } from "../../src/observe/log-files.ts";

const FOLLOWERS = 100;
const STEP_BYTES = 32 * 1024;
const BYTES = 16 * STEP_BYTES;

it("all log followers together take one step per turn of the event loop", async () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-followers-"));
  try {
    const line = `2026-11-22T20:00:00.000Z ${"x".repeat(999)}\n`;
    const text = line.repeat(Math.floor(BYTES / line.length));
    writeFileSync(join(directory, "w-0.log"), text, { mode: 0o600 });
    let turns = 0;
    let isOver = false as boolean;
    const count = () => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const follow = async () => {
      let lines = 0;
      for await (const some of readLogLines(directory, true, async () => true)) lines += some.length;
      return lines;
    };
    const read = await Promise.all(Array.from({ length: FOLLOWERS }, follow));
    isOver = true;
    expect(new Set(read)).toEqual(new Set([text.length / line.length]));
    expect(turns).toBeGreaterThanOrEqual((FOLLOWERS * text.length) / STEP_BYTES);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
