/**
 * Many jobs of one batch: how fast they are accepted, and end with warm workers; and what thousands that wait cost. A
 * client of the same machine submits them at a fixed rate, whatever the responses.
 */
import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { TestServer } from "../test/harness/server.ts";
import { cpuSeconds, median, report } from "./measure.ts";

const RATE = 200;
const SECONDS = 30;
/** An API may have twice as many unfinished jobs as stay free, so the last of them are refused. */
const QUEUED_APIS = ["a", "b", "c", "d", "e"].map((name) => `queued-${name}`);
const QUEUED_EACH = 1_000;
const SETTLE_MS = 10_000;
/** In windows, of which the median counts: V8 gives back memory once after a burst, which takes a second of CPU. */
const WINDOWS = 5;
const WINDOW_MS = 10_000;
const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config):
        self.hold_s = config.get("hold_s", 0)
    def predict(self, payload):
        time.sleep(self.hold_s)
        return payload
`;
const JOB = { workers: 1, item_list: { items: [1], batch_size: 1 } };
const api = (name: string, more = "") =>
  `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py, reuse_worker: true}\n${more}`;

interface Accepted {
  status: number;
  ms: number;
}

export async function benchSmallJobs(): Promise<void> {
  const server = new TestServer();
  await server.start();
  server.deploy({ "quern.yaml": api("small"), "p.py": PREDICTOR });
  const startMs = performance.now();
  const accepted = await submitAll(server, "small", RATE * SECONDS, 1_000 / RATE);
  const refused = accepted.filter(({ status }) => status !== 200).length;
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(accepted, share));
  await whenEnded(server, RATE * SECONDS - refused);
  const rate = ((RATE * SECONDS - refused) * 1_000) / (performance.now() - startMs);
  await server.stop();
  console.log(`       ${RATE} submissions a second for ${SECONDS} s: p50 ${p50!.toFixed(0)} ms`);
  report("submissions that were not accepted", refused, "0", refused === 0);
  report("p99 of accepting a job of one batch, ms", p99!, "< 200", p99! < 200);
  report("jobs of one batch that end a second, warm workers", rate, ">= 150", rate >= 150);
  await benchQueued();
}

/** Thousands of jobs wait behind one that has the only CPU. */
async function benchQueued(): Promise<void> {
  const server = new TestServer();
  await server.start({}, ["--cpus", "1"]);
  const files = ["holds", ...QUEUED_APIS].map((name) => api(name, "  compute: {cpu: 1}\n"));
  server.deploy({ "quern.yaml": files.join(""), "p.py": PREDICTOR });
  await server.submit("holds", { ...JOB, config: { hold_s: 3_600 } });
  await pause(1_000);
  let queued = 0;
  for (const name of QUEUED_APIS)
    queued += (await submitAll(server, name, QUEUED_EACH, 5)).filter(({ status }) => status === 200).length;
  await whenEnqueued(server);
  await pause(SETTLE_MS);
  const controller = server.child("controller");
  const windows: number[] = [];
  for (let before = cpuSeconds(controller); windows.length < WINDOWS; ) {
    await pause(WINDOW_MS);
    const now = cpuSeconds(controller);
    windows.push(((now - before) / WINDOW_MS) * 100_000);
    before = now;
  }
  const percent = median(windows);
  report(`${queued} jobs that wait, controller, percent of a core`, percent, "< 2", percent < 2);
  await server.stopProcesses();
  const startMs = performance.now();
  await server.start({}, ["--cpus", "1"]);
  const seconds = (performance.now() - startMs) / 1_000;
  report(`a start with ${queued} jobs that wait, s`, seconds, "< 2", seconds < 2);
  await server.stop();
}

async function submitAll(
  server: TestServer,
  name: string,
  count: number,
  everyMs: number,
): Promise<Accepted[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const startMs = performance.now();
  const answers: Promise<Accepted>[] = [];
  for (let n = 0; n < count; n++) {
    const waitMs = startMs + n * everyMs - performance.now();
    if (waitMs > 1) await pause(waitMs);
    answers.push(submit(`${server.baseUrl}/${name}`, agent));
  }
  const accepted = await Promise.all(answers);
  agent.destroy();
  return accepted;
}

function submit(url: string, agent: Agent): Promise<Accepted> {
  const startMs = performance.now();
  const headers = { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.once("end", () => resolve({ status: response.statusCode!, ms: performance.now() - startMs }));
    });
    sent.once("error", reject).end(JSON.stringify(JOB));
  });
}

function quantile(accepted: readonly Accepted[], share: number): number {
  const sorted = accepted.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))]!;
}

/** Until then they do not only wait. */
async function whenEnqueued(server: TestServer): Promise<void> {
  const enqueuing = /^quern_jobs\{.*status="status_enqueuing"\} [1-9]/m;
  while (enqueuing.test(await server.metrics())) await pause(1_000);
}

/** Asked rarely: each question costs CPU. */
async function whenEnded(server: TestServer, count: number): Promise<void> {
  const ended = /^quern_jobs\{api="small",status="status_succeeded"\} (\d+)$/m;
  while (Number(ended.exec(await server.metrics())?.[1] ?? 0) < count) await pause(500);
}
