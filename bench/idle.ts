/**
 * Measures the share of a core that an idle server with one live API uses: all its processes, from /proc. Beside it are
 * as many processes that only wake up as rarely: on some virtual machines each wake-up of a process costs milliseconds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { eventually } from "../test/harness/eventually.ts";
import { ECHO, project } from "../test/harness/projects.ts";
import { TestServer } from "../test/harness/server.ts";
import { report } from "./measure.ts";

/**
 * After this the work of the start is over: V8 collects garbage for the last time about a minute after a process became
 * idle.
 */
const SETTLE_MS = 90_000;
const MEASURED_MS = 60_000;
const BAR_PERCENT = 0.3;
const BARE_NODE = ["node", "-e", "setInterval(() => {}, 4_000)"];
const BARE_PYTHON = ["python3", "-c", "import time\nwhile True: time.sleep(4)"];

/** In nanoseconds, because /proc/PID/stat charges whole ticks, or none, for wake-ups of microseconds. */
function cpuSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ns = threads.map(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0],
  );
  return ns.reduce((sum, each) => sum + Number(each), 0) / 1e9;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchIdle(): Promise<void> {
  const server = new TestServer();
  await server.start();
  server.deploy(project(ECHO));
  await eventually("the first answer", async () => (await server.post("/echo", 1)).status === 200);
  const bare = [BARE_NODE, BARE_NODE, BARE_NODE, BARE_PYTHON].map(
    ([command, ...args]): ChildProcess => spawn(command!, args, { stdio: "ignore" }),
  );
  await pause(SETTLE_MS);
  const processes: Record<string, number> = {
    parent: server.parent!.pid!,
    gateway: server.child("gateway"),
    controller: server.child("controller"),
    worker: server.workers()[0]!,
  };
  const pids = [...Object.values(processes), ...bare.map(({ pid }) => pid!)];
  const before = pids.map((pid) => cpuSeconds(pid));
  await pause(MEASURED_MS);
  const percent = pids.map((pid, at) => ((cpuSeconds(pid) - before[at]!) / MEASURED_MS) * 100_000);
  for (const process of bare) process.kill();
  await server.stop();
  const names = Object.keys(processes);
  const parts = names.map((name, at) => `${name} ${percent[at]!.toFixed(2)}`);
  const [sum, bareSum] = [percent.slice(0, names.length), percent.slice(names.length)].map((all) =>
    all.reduce((total, each) => total + each, 0),
  ) as [number, number];
  console.log(`       idle, percent of a core: ${parts.join(", ")}`);
  console.log(`       three bare Node processes and a Python that wake up each 4 s: ${bareSum.toFixed(2)}`);
  report("idle with one API, percent of a core", sum, `<= ${BAR_PERCENT}`, sum <= BAR_PERCENT);
}
