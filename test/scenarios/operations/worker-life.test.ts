/** docs/contract/predictor.md#start-and-life: workers that hang in their start, and workers that are replaced. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { PID_STREAM } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { type Answer, SteadyLoad } from "../../harness/steady-load.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        print("starting", flush=True)
        while config.get("hangs"): time.sleep(0.1)
    def predict(self, payload):
        return os.getpid()
`;
const BATCHES = `
import atexit, os, signal, time
class PythonPredictor:
    def __init__(self, config):
        while config.get("hangs"): time.sleep(0.1)
        if config.get("lingers"): atexit.register(time.sleep, 4)
        self.lingers, self.halts = config.get("lingers"), config.get("halts")
    def predict(self, payload):
        if self.lingers: time.sleep(payload[0])
        if self.halts and payload[0] == 2: os.kill(os.getpid(), signal.SIGSTOP)
        return [os.getpid() for _ in payload]
    def on_job_complete(self):
        print("completed", flush=True)
`;

const server = new TestServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

const project = (api: string, predictor: string, text = PREDICTOR) => ({
  "quern.yaml": `- ${api}\n  predictor: {path: p.py, ${predictor}}\n`,
  "p.py": text,
});
const pidOf = ({ body }: Answer) => JSON.parse(body) as number;
/** How often each value comes, in the order in which they came first. */
function counts(values: readonly number[]): number[] {
  const found = new Map<number, number>();
  for (const value of values) found.set(value, (found.get(value) ?? 0) + 1);
  return [...found.values()];
}
const apiLog = (name: string) => server.cli(["logs", name]).out;

describe("a replica", () => {
  it("that hangs in __init__ is told of, killed after predictor.startup_timeout and started again", async () => {
    server.deploy(project("name: hung", "startup_timeout: 11s, config: {hangs: true}"), { wait: false });
    const view = () => server.api("hung");
    await eventually("the API says why", async () => ((await view()).message ?? "").includes("11s"), 30_000);
    expect((await view()).message).toMatch(
      /was not ready after 11s and was killed; if __init__ needs longer/,
    );
    await eventually("a second start", () => apiLog("hung").split("starting\n").length > 2, 30_000);
    expect(apiLog("hung")).toMatch(/replica \S+ has been starting for 10 s/);
    server.deploy(project("name: hung", "startup_timeout: 11s"));
    expect((await server.post("/hung", {})).status).toBe(200);
    server.cli(["delete", "-y", "hung"]);
  }, 90_000);

  it("is replaced after predictor.max_requests: about nine times in 10,000 requests, of which none fails", async () => {
    server.deploy(project("name: leaky", "max_requests: 1000"));
    const load = new SteadyLoad(`${server.baseUrl}/leaky`, 4, {}, 4);
    await eventually("10,000 are answered", () => load.answers.length >= 10_000, 60_000);
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const served = counts(answers.map(pidOf));
    // The last two may still have requests left.
    expect(Math.min(...served.slice(0, -2))).toBeGreaterThanOrEqual(1_000);
    expect(served.length).toBeGreaterThanOrEqual(8);
    expect(served.length).toBeLessThanOrEqual(11);
    expect((await server.api("leaky")).status).toBe("live");
    expect(apiLog("leaky")).toContain("has reached max_requests or max_age");
  });

  it("that somebody has stopped goes on: a replica", async () => {
    server.deploy(project("name: halted", "config: {}"));
    const ask = async () => (await (await server.post("/halted", {})).json()) as number;
    const pid = await ask();
    process.kill(pid, "SIGSTOP");
    // The response comes when it goes on, from the same process.
    expect(await ask()).toBe(pid);
    await eventually("the server's log says so", () =>
      server.stderr.includes("a stopped worker (SIGSTOP) goes on"),
    );
    server.cli(["delete", "-y", "halted"]);
  });

  it("that another controller started is replaced after predictor.max_requests too", async () => {
    server.deploy(project("name: adopted", "max_requests: 20"));
    const ask = async () => (await (await server.post("/adopted", {})).json()) as number;
    const first = await ask();
    process.kill(server.child("controller"), "SIGSTOP");
    for (let sent = 1; sent < 20; sent++) expect(await ask()).toBe(first);
    process.kill(server.child("controller"), "SIGKILL");
    await eventually("a successor serves", async () => (await ask()) !== first);
  });

  it("that is older than predictor.startup_timeout outlives the controller, also in the middle of a prediction", async () => {
    const slow = PREDICTOR.replace("return os", "time.sleep(payload.get('seconds', 0)); return os");
    server.deploy(project("name: elder", "startup_timeout: 1s", slow));
    const deployedMs = performance.now();
    const ask = async (seconds: number) =>
      (await (await server.post("/elder", { seconds })).json()) as number;
    const pid = await ask(0);
    await eventually("it is old enough", () => performance.now() - deployedMs > 1_500);
    const asked = ask(3);
    const former = server.child("controller");
    process.kill(former, "SIGKILL");
    await eventually("another controller serves", async () => (await server.api("elder")).status === "live");
    expect(server.child("controller")).not.toBe(former);
    expect(await asked).toBe(pid);
    expect(await ask(0)).toBe(pid);
  });

  it("is not replaced while a stream keeps its predecessor, so streams keep one process more, also for another controller", async () => {
    const api = "name: streamed\n  autoscaling: {max_replicas: 1}";
    server.deploy(project(api, "max_requests: 1", PID_STREAM));
    const ask = async () => (await (await server.post("/streamed", {})).json()) as number;
    const stream = new AbortController();
    const body = JSON.stringify({ stream: true });
    const { signal } = stream;
    const init = { method: "POST", headers: { "content-type": "application/json" }, body, signal };
    let pieces = "";
    const read = async () => {
      for await (const piece of (await fetch(`${server.baseUrl}/streamed`, init)).body!)
        pieces += Buffer.from(piece).toString();
    };
    const reading = read().catch(() => "aborted");
    await eventually("a piece comes", () => pieces.includes("\n"));
    const first = Number(pieces.split("\n")[0]);
    await eventually("a successor serves", async () => (await ask()) !== first);
    const second = await ask();
    await eventually("it is worn", () => apiLog("streamed").split("has reached").length > 2);
    // A successor of it would be ready before the replica of another API.
    server.deploy(project("name: other", ""));
    expect(await ask()).toBe(second);
    const former = server.child("controller");
    process.kill(former, "SIGKILL");
    await eventually(
      "another controller serves",
      async () => (await server.api("streamed")).status === "live",
    );
    expect(server.child("controller")).not.toBe(former);
    expect(await ask()).toBe(second);
    const before = pieces.length;
    await eventually("the stream goes on", () => pieces.length > before);
    expect(pieces).not.toContain("error");
    stream.abort();
    expect(await reading).toBe("aborted");
    await eventually("it is replaced too", async () => (await ask()) !== second);
  });

  it("is replaced at predictor.max_age, and no request fails", async () => {
    server.deploy(project("name: aged", "max_age: 2s"));
    const load = new SteadyLoad(`${server.baseUrl}/aged`, 2, {}, 5);
    await eventually("three have served", () => new Set(load.answers.map(pidOf)).size >= 3, 60_000);
    expect((await load.stop()).filter(({ status }) => status !== 200)).toEqual([]);
  });
});

describe("a worker of a job", () => {
  const batchApi = (name: string, predictor: string) =>
    project(`name: ${name}\n  kind: BatchAPI\n  compute: {cpu: 50m}`, predictor, BATCHES);
  const items = (count: number) => Array.from({ length: count }, (_, number) => number);
  const pidsOf = async (api: string, job: string) => {
    const text = await (await server.fetch(`/${api}/${job}/results`)).text();
    return text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { prediction: number }).prediction);
  };

  it("does predictor.max_requests batches at most, and the job's output has each item once", async () => {
    server.deploy(batchApi("worn", "max_requests: 40"));
    const job = await server.submit("worn", {
      workers: 2,
      item_list: { items: items(500), batch_size: 2 },
      output: {},
    });
    expect(await server.ended("worn", job)).toMatchObject({ status: "status_succeeded" });
    const pids = await pidsOf("worn", job);
    expect(pids).toHaveLength(500);
    const batches = counts(pids).map((rows) => rows / 2);
    expect(Math.max(...batches)).toBeLessThanOrEqual(40);
    expect(batches.length).toBeGreaterThanOrEqual(7);
    const log = server.cli(["logs", "worn", job]).out;
    expect(log).toContain("has reached max_requests or max_age, and is replaced");
    expect(log).toContain("completed");
  });

  it("that somebody has stopped goes on: a worker of a job", async () => {
    server.deploy(batchApi("halts", "config: {halts: true}"));
    const work = { items: items(4), batch_size: 1 };
    const job = await server.submit("halts", { workers: 1, item_list: work, output: {} });
    expect(await server.ended("halts", job)).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: 4 },
    });
    expect(new Set(await pidsOf("halts", job)).size).toBe(1);
  });

  it("that is replaced and takes long to leave does not keep the job from its end", async () => {
    server.deploy(batchApi("lingering", "max_requests: 2, config: {lingers: true}"));
    // Five workers leave while the sixth does the last batch.
    const work = { items: [...items(10).fill(0), 1], batch_size: 1 };
    const job = await server.submit("lingering", { workers: 6, item_list: work, output: {} });
    expect(await server.ended("lingering", job)).toMatchObject({ status: "status_succeeded" });
  });

  it("that has done the last batch is not replaced: it runs on_job_complete", async () => {
    server.deploy(batchApi("last", "max_requests: 1"));
    const job = await server.submit("last", { workers: 1, item_list: { items: [0], batch_size: 1 } });
    expect(await server.ended("last", job)).toMatchObject({ status: "status_succeeded" });
    const log = server.cli(["logs", "last", job]).out;
    expect(log).toContain("completed");
    expect(log).not.toContain("is replaced");
  });

  it("that hangs in __init__ past predictor.startup_timeout ends the job, which says why", async () => {
    server.deploy(batchApi("stuck", "startup_timeout: 1s, config: {hangs: true}"));
    const job = await server.submit("stuck", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    const { status, reason } = await server.ended("stuck", job);
    expect(status).toBe("status_worker_error");
    expect(reason?.message).toContain("was not ready after 1s and was killed");
  });
});
