/**
 * What an idle server uses of a core, and its memory, from /proc: with one live API, and with a hundred replicas. Beside
 * the first are as many processes that only wake up as rarely: on some virtual machines each wake-up of a process costs
 * milliseconds.
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
const BAR_PSS_MIB = 110;
const REPLICAS = 100;
/** Of Quern's own processes, without the replicas. */
const BAR_REPLICAS_PERCENT = 1;
const BARE_NODE = ["node", "-e", "setInterval(() => {}, 4_000)"];
const BARE_PYTHON = ["python3", "-c", "import time\nwhile True: time.sleep(4)"];

type Named = Record<string, number>;

/** In nanoseconds, because /proc/PID/stat charges whole ticks, or none, for wake-ups of microseconds. */
function cpuSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ns = threads.map(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0],
  );
  return ns.reduce((sum, each) => sum + Number(each), 0) / 1e9;
}

/** Memory in which a page that several processes share counts once for all of them. */
function pssMiB(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))![1]) / 1024;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0);

export async function benchIdle(): Promise<void> {
  await benchOneApi();
  await benchReplicas();
}

async function benchOneApi(): Promise<void> {
  const server = await startedWith(1);
  const bare = [BARE_NODE, BARE_NODE, BARE_NODE, BARE_PYTHON].map(
    ([command, ...args]): ChildProcess => spawn(command!, args, { stdio: "ignore" }),
  );
  await pause(SETTLE_MS);
  const processes: Named = { ...ownProcesses(server), worker: server.workers()[0]! };
  const bareProcesses = Object.fromEntries(bare.map(({ pid }, at) => [`bare ${at}`, pid!]));
  const percent = await percentOf({ ...processes, ...bareProcesses });
  const pss = sum(Object.values(processes).map(pssMiB));
  for (const process of bare) process.kill();
  await server.stop();
  const [own, beside] = [processes, bareProcesses].map((named) => shown(percent, Object.keys(named)));
  console.log(`       idle, percent of a core: ${own!.text}`);
  console.log(
    `       three bare Node processes and a Python that wake up each 4 s: ${beside!.sum.toFixed(2)}`,
  );
  report("idle with one API, percent of a core", own!.sum, `<= ${BAR_PERCENT}`, own!.sum <= BAR_PERCENT);
  report("memory with one API (PSS), MiB", pss, `<= ${BAR_PSS_MIB}`, pss <= BAR_PSS_MIB);
}

async function benchReplicas(): Promise<void> {
  const server = await startedWith(REPLICAS);
  await pause(SETTLE_MS);
  const processes = ownProcesses(server);
  const { sum: percent, text } = shown(await percentOf(processes), Object.keys(processes));
  await server.stop();
  console.log(`       idle with ${REPLICAS} replicas, percent of a core: ${text}`);
  const what = `idle with ${REPLICAS} replicas, which are not counted, percent of a core`;
  report(what, percent, `<= ${BAR_REPLICAS_PERCENT}`, percent <= BAR_REPLICAS_PERCENT);
}

async function startedWith(replicas: number): Promise<TestServer> {
  const server = new TestServer();
  await server.start({}, ["--cpus", String(replicas)]);
  const realtime = `  autoscaling: {min_replicas: ${replicas}, max_replicas: ${replicas}}\n`;
  server.deploy(project(ECHO, { realtime }));
  await eventually("the first answer", async () => (await server.post("/echo", 1)).status === 200);
  await eventually("all replicas run", () => server.workers().length >= replicas);
  return server;
}

function ownProcesses(server: TestServer): Named {
  return {
    parent: server.parent!.pid!,
    gateway: server.child("gateway"),
    controller: server.child("controller"),
  };
}

/** Over a minute, each for itself. */
async function percentOf(processes: Named): Promise<Named> {
  const before = Object.values(processes).map(cpuSeconds);
  await pause(MEASURED_MS);
  const percent = Object.entries(processes).map(([name, pid], at) => {
    return [name, ((cpuSeconds(pid) - before[at]!) / MEASURED_MS) * 100_000];
  });
  return Object.fromEntries(percent);
}

function shown(percent: Named, names: readonly string[]): { sum: number; text: string } {
  const text = names.map((name) => `${name} ${percent[name]!.toFixed(2)}`).join(", ");
  return { sum: sum(names.map((name) => percent[name]!)), text };
}
