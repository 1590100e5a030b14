/** A hundred followers of a log, or of the audit, as many as a key may have. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readLogLines } from "../../src/observe/log-files.ts";
import { readAudit } from "../../src/observe/read-audit.ts";
import { countTurns } from "../harness/turns.ts";

const FOLLOWERS = 100;
const STEP_BYTES = 32 * 1024;
const BYTES = 16 * STEP_BYTES;

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "quern-followers-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

it("all log followers together take one step per turn of the event loop", () =>
  inDirectory(async (directory) => {
    const line = `2026-11-22T20:00:00.000Z ${"x".repeat(999)}\n`;
    const text = line.repeat(Math.floor(BYTES / line.length));
    writeFileSync(join(directory, "w-0.log"), text, { mode: 0o600 });
    const follow = async () => {
      let lines = 0;
      for await (const some of readLogLines(directory, true, async () => true)) lines += some.length;
      return lines;
    };
    const all = await countTurns(() => Promise.all(Array.from({ length: FOLLOWERS }, follow)));
    expect(new Set(all.result)).toEqual(new Set([text.length / line.length]));
    expect(all.turns).toBeGreaterThanOrEqual((FOLLOWERS * text.length) / STEP_BYTES);
  }));

const AUDIT_LINE = `${JSON.stringify({ time: "2026-11-22T20:00:00.000000000Z", by: "k-1", path: "/".repeat(900) })}\n`;
const AUDIT_TEXT = AUDIT_LINE.repeat(Math.floor(BYTES / AUDIT_LINE.length));

it.each([
  ["everything", undefined, AUDIT_TEXT.length / AUDIT_LINE.length],
  ["a key without a line", "k-2", 0],
])("all readers of the audit together take one step per turn: of %s", (_, key, most) =>
  inDirectory(async (directory) => {
    writeFileSync(join(directory, "audit.log"), AUDIT_TEXT, { mode: 0o600 });
    const read = async () => {
      let lines = 0;
      for await (const some of readAudit(directory, { since: "", key, follow: false })) lines += some.length;
      return lines;
    };
    const all = await countTurns(() => Promise.all(Array.from({ length: FOLLOWERS }, read)));
    expect(new Set(all.result)).toEqual(new Set([most]));
    expect(all.turns).toBeGreaterThanOrEqual((FOLLOWERS * AUDIT_TEXT.length) / STEP_BYTES);
  }),
);

it("a reader of the audit who leaves is not read for any further, even if no line matched", () =>
  inDirectory(async (directory) => {
    writeFileSync(join(directory, "audit.log"), AUDIT_TEXT, { mode: 0o600 });
    const reading = readAudit(directory, { since: "", key: "k-2", follow: true });
    expect(await reading.next()).toEqual({ done: false, value: [] });
    const left = await countTurns(async () => {
      const next = reading.next();
      await reading.return(undefined);
      return next;
    });
    expect(left.result).toEqual({ done: false, value: [] });
    expect(left.turns).toBeLessThan(AUDIT_TEXT.length / STEP_BYTES / 2);
  }));

it("a follower of the audit whose client does not read holds one step of each file", () =>
  inDirectory(async (directory) => {
    for (const name of ["audit.log", "audit-jobs.log", "audit-refused.log"])
      writeFileSync(join(directory, name), AUDIT_TEXT, { mode: 0o600 });
    const following = readAudit(directory, { since: "", key: undefined, follow: true });
    const { value } = await following.next();
    const text = (value as string[]).join("\n");
    expect([text.length > 0, text.length <= STEP_BYTES]).toEqual([true, true]);
    await following.return(undefined);
  }));

it("a line of the audit that is longer than a step is read whole", () =>
  inDirectory(async (directory) => {
    const long = AUDIT_LINE.replace("k-1", `jwt:${"s".repeat(4 * STEP_BYTES)}`);
    writeFileSync(join(directory, "audit.log"), AUDIT_LINE + long + AUDIT_LINE, { mode: 0o600 });
    const lines: string[] = [];
    for await (const some of readAudit(directory, { since: "", key: undefined, follow: false }))
      lines.push(...some);
    expect(lines.map((line) => `${line}\n`)).toEqual([AUDIT_LINE, long, AUDIT_LINE]);
  }));
