/** The poll of workers' memory: what it may pass over, and what not. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, expect, it, vi } from "vitest";
import { MemoryWatch } from "../../../src/engine/local/memory-watch.ts";
import { ProcessActivity } from "../../../src/engine/local/process-activity.ts";
import { eventually } from "../../harness/eventually.ts";

const MIB = 2 ** 20;
const CHILD = "import time; held = b'x' * (60 << 20); time.sleep(600)";
const PARENT = `
import subprocess, sys, time
sys.stdin.readline()
child = subprocess.Popen([sys.executable, "-c", ${JSON.stringify(CHILD)}])
try: sys.stdin.read()
finally: child.kill()
`;

let parent: ChildProcess | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  if (parent === undefined) return;
  const exited = new Promise((resolve) => parent!.once("exit", resolve));
  parent.stdin!.end();
  await exited;
  parent = undefined;
});

it.runIf(process.platform === "linux")(
  "a child counts even if nothing of its start is seen: vfork leaves no trace in a short call",
  async () => {
    parent = spawn("python3", ["-c", PARENT], { stdio: ["pipe", "ignore", "inherit"] });
    const watch = new MemoryWatch();
    let overBytes = 0;
    const watched = watch.add(parent.pid!, 50 * MIB, (bytes) => {
      overBytes = bytes;
    });
    await eventually("it was measured", () => watched.bytes > 0);
    vi.spyOn(ProcessActivity.prototype, "hasRun").mockReturnValue(false);
    parent.stdin!.write("\n");
    await eventually("the limit is noticed", () => overBytes > 0, 20_000);
    expect(overBytes).toBeGreaterThan(50 * MIB);
    watch.remove(watched);
  },
);
