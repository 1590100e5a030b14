/** One account of CPUs and memory for replicas and workers of jobs: workers that do not fit wait, and say for what. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, PID_STREAM } from "../../harness/projects.ts";
import { readStream } from "../../harness/read-stream.ts";
import { TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";
import type { ApiView } from "../../harness/views.ts";

const server = new TestServer({ QUERN_CPUS: "1", QUERN_MEMORY: "1Gi" });
beforeAll(() => server.start());
afterAll(() => server.stop());

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.version = config["version"]
    def predict(self, payload):
        time.sleep((payload or {}).get("seconds", 0))
        return [self.version, os.getpid()]
`;

function deploy(name: string, compute: string, more = "", version = 1): void {
  const yaml = `- name: ${name}\n  predictor: {path: p.py, config: {version: ${version}}}\n  compute: {${compute}}\n${more}`;
  server.deploy({ "quern.yaml": yaml, "p.py": PREDICTOR }, { wait: false });
}

const view = (name: string) => server.api(name);
const isLive = (name: string) => async () => (await view(name)).status === "live";
const remove = (...names: string[]) => {
  for (const name of names) expect(server.cli(["delete", name, "-y"]).code).toBe(0);
};
const answer = async (name: string) => (await (await server.post(`/${name}`, {})).json()) as [number, number];

/** A job of two batches that run until its file exists; its worker takes 0.4 CPU. */
async function startJob(name: string): Promise<{ id: string; end: () => void }> {
  const path = join(server.dir, `${name}-may-end`);
  const items = [
    { do: "await", path },
    { do: "await", path },
  ];
  const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
  return { id, end: () => writeFileSync(path, "") };
}

describe("an API that does not fit", () => {
  beforeAll(() => {
    const yaml = "- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n  compute: {cpu: 400m}\n";
    server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT });
  });

  it("waits like a job's worker, names the missing resources and their holder, and starts when they are released", async () => {
    const job = await startJob("first");
    deploy("large", "cpu: 600m");
    await eventually("both have their part", async () => {
      const { worker_counts } = await server.job("jobs", job.id);
      return worker_counts?.running === 1 && (await isLive("large")());
    });
    deploy("late", "cpu: 300m");
    await eventually("it waits", async () => (await view("late")).status === "compute unavailable");
    expect((await view("late")).message).toMatch(
      /^1 of 1 replicas wait for compute: each takes 0.3 CPU; 0 CPU .* of 1 CPU and 1024 MiB are free; reserved by .*; it starts when/,
    );
    const holders = ["API large (0.6 CPU)", `job ${job.id} of jobs (0.4 CPU)`];
    for (const holder of holders) expect(server.cli(["describe", "late"]).out).toContain(holder);
    expect(server.cli(["get", "late"]).out).toContain("reserved by API large (0.6 CPU)");
    await eventually("its log says it", () =>
      server.cli(["logs", "late"]).out.includes("1 of 1 replicas wait for compute: each takes 0.3 CPU"),
    );
    // What a worker of a job that died had is for whoever has the better right: replicas come first.
    const replica = (await view("large")).replicas[0]!.pid;
    const [worker, ...others] = server.workers().filter((pid) => pid !== replica);
    expect(others).toEqual([]);
    process.kill(worker!, "SIGKILL");
    await eventually("it serves", isLive("late"));
    expect((await server.job("jobs", job.id)).worker_counts).toMatchObject({ running: 0, pending: 1 });
    job.end();
    remove("large", "late");
    await eventually(
      "the job goes on",
      async () => (await server.job("jobs", job.id)).end_time !== undefined,
    );
  }, 120_000);

  it("reports that it never fits, and the previous version keeps serving", async () => {
    deploy("a", "cpu: 600m");
    await eventually("it serves", isLive("a"));
    const before = await answer("a");
    deploy("a", "cpu: 1500m", "", 2);
    await eventually("it is told", async () =>
      /it can never fit on this server: lower compute.cpu, or start the server with a larger --cpus$/.test(
        (await view("a")).message ?? "",
      ),
    );
    expect((await view("a")).status).toBe("compute unavailable");
    expect(await answer("a")).toEqual(before);
    remove("a");
  });

  it("is reported as limited if the load needs more replicas than fit", async () => {
    const rules =
      "window: 1s, upscale_stabilization_period: 0s, target_replica_concurrency: 1, max_replica_concurrency: 1000";
    deploy("a", "cpu: 400m", `  autoscaling: {min_replicas: 1, max_replicas: 4, ${rules}}\n`);
    await eventually("it serves", isLive("a"));
    const load = new SteadyLoad(`${server.baseUrl}/a`, 4, { seconds: 0.05 });
    let seen: ApiView | undefined;
    await eventually("it is held back", async () => {
      seen = await view("a");
      return seen.up_to_date_replicas === 2 && seen.requested_replicas > 2 && seen.message !== undefined;
    });
    await load.stop();
    expect(seen).toMatchObject({
      status: "live",
      requested_because: expect.stringContaining("requests in flight"),
      message: expect.stringMatching(/^[12] of [34] replicas wait for compute: each takes 0.4 CPU/),
    });
    remove("a");
  });
});

describe("an API that fits", () => {
  it("keeps its reservation while others wait: after a death, in an update, and after a restart of the server", async () => {
    deploy("a", "cpu: 700m");
    await eventually("it serves", isLive("a"));
    const [, first] = await answer("a");
    const job = await startJob("second");
    const isPending = async () => (await server.job("jobs", job.id)).worker_counts?.pending === 1;
    await eventually("the job waits", isPending);
    process.kill(first, "SIGKILL");
    await eventually("another serves", async () => {
      const { status } = await view("a");
      return status === "live" && (await answer("a"))[1] !== first;
    });
    expect(await isPending()).toBe(true);
    // Two do not fit: the second gets the reservation of the first, and no request is lost.
    const load = new SteadyLoad(`${server.baseUrl}/a`, 2, { seconds: 0.01 });
    deploy("a", "cpu: 800m", "", 2);
    await eventually("the new one serves", async () => (await answer("a"))[0] === 2);
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(await isPending()).toBe(true);
    await server.stopProcesses();
    await server.start();
    await eventually("it serves again", isLive("a"));
    expect(await isPending()).toBe(true);
    remove("a");
    job.end();
    expect((await server.ended("jobs", job.id)).status).toBe("status_succeeded");
  }, 120_000);

  it("is replaced one replica at a time if memory does not suffice for two, and requests wait", async () => {
    const scaling = "  autoscaling: {min_replicas: 2, max_replicas: 2}\n";
    deploy("a", "cpu: 100m, mem: 500Mi", scaling);
    await eventually("both serve", isLive("a"));
    const load = new SteadyLoad(`${server.baseUrl}/a`, 2, { seconds: 0.01 });
    deploy("a", "cpu: 100m, mem: 500Mi", scaling, 2);
    let most = 0;
    await eventually("both are replaced", async () => {
      const { status, replicas } = await view("a");
      most = Math.max(most, replicas.length);
      return status === "live" && replicas.every(({ is_up_to_date }) => is_up_to_date);
    });
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(most).toBe(2);
    remove("a");
    await eventually("all is given back", () => server.workers().length === 0);
  });

  it("leaves its memory to its successor, also if a stream does not end", async () => {
    const yaml =
      "- name: s\n  predictor: {path: p.py, max_requests: 1, timeout: 1s}\n  compute: {cpu: 100m, mem: 600Mi}\n";
    server.deploy({ "quern.yaml": yaml, "p.py": PID_STREAM });
    const stream = readStream(`${server.baseUrl}/s`, { stream: true });
    const pids = new Set<number>();
    await eventually("two have answered", async () => {
      const response = await server.post("/s", {});
      if (response.status === 200) pids.add((await response.json()) as number);
      return pids.size === 2;
    });
    expect(await stream).toMatchObject({ status: 200, isWhole: false });
    remove("s");
  });
});

describe("a small job", () => {
  it("starts beside a job whose workers have all the compute: one of them yields, and no batch runs twice", async () => {
    const yaml = "- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n  compute: {cpu: 100m}\n";
    const p =
      "import time\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): time.sleep(0.2)\n";
    server.deploy({ "quern.yaml": yaml, "p.py": p });
    const list = (count: number) => ({ items: Array.from({ length: count }, (_, i) => i), batch_size: 1 });
    // It takes 40 s: a worker yields only after it has worked ten times as long as its start took on a busy machine.
    const large = await server.submit("jobs", { workers: 10, item_list: list(2_000) });
    await eventually("all its workers run", async () => {
      const job = await server.job("jobs", large);
      return job.worker_counts?.running === 10 && job.queued_time === undefined;
    });
    const small = await server.submit("jobs", { workers: 1, item_list: list(1) });
    const { queued_time } = await server.job("jobs", small);
    expect(queued_time).toBeDefined();
    expect((await server.ended("jobs", small)).status).toBe("status_succeeded");
    expect((await server.job("jobs", large)).status).toBe("status_running");
    const ended = await server.ended("jobs", large, 120_000);
    expect(ended.batch_metrics).toMatchObject({ succeeded: 2_000, failed: 0 });
  }, 180_000);
});
