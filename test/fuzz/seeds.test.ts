/** Failures that fuzzing found stay fixed: each kept input runs once. And the fuzzer finds planted failures. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../harness/server.ts";

const MINUTES = 60_000;

function fuzz(...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [join(root, "scripts", "fuzz.mjs"), "--seed", "1", ...args]);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += String(text)));
  return new Promise((resolve) => child.once("close", (code) => resolve(`${said}exit ${code}`)));
}

describe("the fuzzer", () => {
  it(
    "finds no failure in its seeds",
    async () => expect(await fuzz("--seconds", "0")).toMatch(/\n\d+ passed, 0 failed, 0 skipped\nexit 0$/),
    5 * MINUTES,
  );

  it(
    "finds a planted failure, and prints how to run it again",
    async () => {
      const said = await fuzz("--seconds", "60", "--target", "planted-throw,planted-growth");
      expect(said).toContain("the process has grown by");
      expect(said).toContain("TypeError: planted");
      expect(said).toContain("0 passed, 2 failed, 0 skipped");
      const again = /npm run fuzz -- (--target planted-throw --replay \S+)/.exec(said)![1]!;
      const replayed = await fuzz(...again.split(" "));
      expect(replayed).toContain("TypeError: planted");
      expect(replayed).toContain("exit 1");
    },
    5 * MINUTES,
  );
});
