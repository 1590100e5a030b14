/** Measures the share of a core that an idle server with one live API uses: all its processes, from /proc. */
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
  await pause(SETTLE_MS);
  const processes: Record<string, number> = {
    parent: server.parent!.pid!,
    gateway: server.child("gateway"),
    controller: server.child("controller"),
    worker: server.workers()[0]!,
  };
  const before = Object.values(processes).map((pid) => cpuSeconds(pid));
  await pause(MEASURED_MS);
  const percent = Object.values(processes).map(
    (pid, at) => ((cpuSeconds(pid) - before[at]!) / MEASURED_MS) * 100_000,
  );
  await server.stop();
  const parts = Object.keys(processes).map((name, at) => `${name} ${percent[at]!.toFixed(2)}`);
  const sum = percent.reduce((total, each) => total + each, 0);
  console.log(`       idle, percent of a core: ${parts.join(", ")}`);
  report("idle with one API, percent of a core", sum, `<= ${BAR_PERCENT}`, sum <= BAR_PERCENT);
}
