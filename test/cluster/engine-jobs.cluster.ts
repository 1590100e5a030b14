/** Jobs in pods of a real cluster: a Job each (`quern up --engine kubernetes`). */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { JobView } from "../harness/views.ts";
import { EngineServer } from "./engine-server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        if config.get("fails"):
            raise OSError("no model")
    def predict(self, payload):
        if "die" in payload:
            print("about to die", flush=True)
            os.kill(os.getpid(), 11)
        if "memory" in payload:
            return len(b"x" * 400_000_000)
        time.sleep(0.02)
        return [item * item for item in payload]
`;
const ITEMS = Array.from({ length: 1_500 }, (_, id) => id);
const BATCH_SIZE = 5;

let engine: EngineServer;
beforeAll(async () => {
  engine = await EngineServer.start("jobs");
  deploy("squares");
}, 120_000);
afterAll(() => engine?.stop(), 180_000);

function deploy(
  name: string,
  compute: object = {},
  config: object = {},
  files: Record<string, string> = {},
): string {
  const api = { name, kind: "BatchAPI", predictor: { path: "predictor.py", config } };
  return engine.deploy({ ...api, compute: { cpu: "50m", mem: "128Mi", ...compute } }, PREDICTOR, { files });
}

function submit(items: readonly unknown[], more: object = {}, api = "squares"): Promise<string> {
  const item_list = { items, batch_size: BATCH_SIZE };
  return engine.server.submit(api, { workers: 3, output: {}, item_list, ...more });
}

async function until(id: string, what: string, isSo: (job: JobView) => boolean, api = "squares") {
  let last: JobView | undefined;
  await eventually(
    `job ${id} ${what}`,
    async () => {
      last = await engine.server.job(api, id).catch(() => last);
      return last !== undefined && isSo(last);
    },
    60_000,
    () => JSON.stringify(last),
  );
  return last!;
}

/** A batch of it that is charged once has failed. */
async function inTheMiddle(): Promise<string> {
  const id = await submit(ITEMS);
  await until(id, "has three workers", ({ worker_counts }) => worker_counts?.running === 3);
  await until(id, "has begun", ({ batch_metrics }) => batch_metrics.succeeded > 20);
  return id;
}

/** Every prediction once, in the order of the input. */
async function expectExact(id: string): Promise<void> {
  const job = await engine.server.ended("squares", id);
  expect(job).toMatchObject({
    status: "status_succeeded",
    batch_metrics: { succeeded: ITEMS.length / BATCH_SIZE, failed: 0 },
  });
  const rows = (await (await engine.server.fetch(`/squares/${id}/results`)).text()).trim().split("\n");
  const predictions = rows.map((row) => (JSON.parse(row) as { prediction: number }).prediction);
  expect(predictions).toEqual(ITEMS.map((item) => item * item));
}

const podsOf = (id: string) => engine.podNames(`quern.dev/job=${id}`);
const gone = (id: string) =>
  eventually(
    `nothing of job ${id} is left`,
    () => engine.kubectl("get", "job,secret,pods", "-l", `quern.dev/job=${id}`, "-o", "name") === "",
    30_000,
  );
const logOf = (id: string) => engine.server.cli(["logs", "squares", id]).out;

describe("a job", () => {
  it("is a Job whose pods are its workers, exact, and gone afterwards", async () => {
    const id = await inTheMiddle();
    expect(podsOf(id)).toHaveLength(3);
    const { spec } = JSON.parse(engine.kubectl("get", "job", `quern-job-${id}`, "-o", "json"));
    expect(spec.parallelism).toBe(3);
    await expectExact(id);
    await gone(id);
  });

  it("loses nothing if a pod is removed, which costs no attempt, and gets another one", async () => {
    const id = await inTheMiddle();
    const before = podsOf(id);
    engine.kubectl("delete", "pod", before[0]!, "--wait=false");
    await expectExact(id);
    expect(logOf(id)).toMatch(new RegExp(`worker ${before[0]} lost its pod`));
  });

  it("goes on with its pods after its controller is killed, which costs no attempt", async () => {
    const id = await inTheMiddle();
    const before = podsOf(id);
    process.kill(engine.server.child("controller"), "SIGKILL");
    await until(id, "has three workers again", ({ worker_counts }) => worker_counts?.running === 3);
    expect(podsOf(id)).toEqual(before);
    await expectExact(id);
  });

  it("charges the batch whose predict() kills its worker, and no other, and starts the worker again", async () => {
    const id = await submit(["die", ...ITEMS.slice(1, 600)], { workers: 2 });
    await until(id, "has begun", ({ batch_metrics }) => batch_metrics.succeeded > 5);
    const before = podsOf(id);
    const job = await engine.server.ended("squares", id);
    expect(job.batch_metrics).toMatchObject({ succeeded: 119, failed: 1 });
    expect(before).toHaveLength(2);
    const { out } = engine.server.cli(["job", "failures", "squares", id]);
    expect(out).toMatch(/was killed by SIGSEGV/);
    expect(logOf(id).match(/worker \S+ was killed by SIGSEGV/g)).toHaveLength(1);
  });

  it("says that a batch needs more memory than it may", async () => {
    const id = await submit(["memory", 1], { workers: 1 });
    const job = await engine.server.ended("squares", id);
    expect(job.status).toBe("status_worker_oom");
    expect(job.reason?.evidence).toMatchObject({ out_of_memory: "limit" });
  });

  it("that is stopped has no pods any more", async () => {
    const id = await inTheMiddle();
    expect(engine.server.cli(["job", "stop", "squares", id]).code).toBe(0);
    await until(id, "is stopped", ({ status }) => status === "status_stopped");
    await gone(id);
  });
});

describe("a job that waits", () => {
  it("says so if its Job is suspended, as a queue does, and goes on", async () => {
    const id = await inTheMiddle();
    const suspend = (is: boolean) =>
      engine.kubectl("patch", "job", `quern-job-${id}`, "-p", JSON.stringify({ spec: { suspend: is } }));
    suspend(true);
    await until(id, "says why", ({ waiting }) => /the Job is suspended/.test(waiting ?? ""));
    suspend(false);
    await expectExact(id);
  });

  it("says if no node has a place, or the image cannot be pulled", async () => {
    deploy("large", { cpu: "100", queue: "gpus" });
    deploy("absent", { image: "quern.test/absent:1" });
    const large = await submit(ITEMS, {}, "large");
    const absent = await submit(ITEMS, {}, "absent");
    const says = /no node has a place for it: 0\/2 nodes .*Insufficient cpu/;
    await until(large, "says why", ({ waiting }) => says.test(waiting ?? ""), "large");
    const job = JSON.parse(engine.kubectl("get", "job", `quern-job-${large}`, "-o", "json"));
    expect(job.metadata.labels["kueue.x-k8s.io/queue-name"]).toBe("gpus");
    await until(absent, "says why", ({ waiting }) => /ImagePullFailed: /.test(waiting ?? ""), "absent");
    for (const api of ["large", "absent"]) engine.server.cli(["delete", api, "--force"]);
    for (const id of [large, absent]) await gone(id);
  });

  it("gets its pods before jobs of a lower priority, whoever waits longer", async () => {
    // Each node has two CPUs.
    deploy("wide", { cpu: "1200m" });
    const submitWide = (priority: number) => submit(ITEMS, { workers: 2, priority }, "wide");
    const first = await submitWide(0);
    const has = (id: string, running: number) =>
      until(id, `has ${running} workers`, (view) => view.worker_counts?.running === running, "wide");
    await has(first, 2);
    const low = await submitWide(-1);
    await until(low, "has no place", ({ waiting }) => /no node has a place/.test(waiting ?? ""), "wide");
    const high = await submitWide(1);
    await until(
      low,
      "is held back",
      ({ waiting }) => /a job of a higher priority/.test(waiting ?? ""),
      "wide",
    );
    expect(engine.server.cli(["job", "stop", "wide", first]).code).toBe(0);
    await has(high, 2);
    expect((await engine.server.job("wide", low)).worker_counts?.running).toBe(0);
    expect(engine.server.cli(["job", "stop", "wide", high]).code).toBe(0);
    await has(low, 2);
    engine.server.cli(["delete", "wide", "--force"]);
    for (const id of [first, low, high]) await gone(id);
  });

  it("ends if its requirements cannot be installed, with the reason of one machine", async () => {
    deploy("needy", {}, {}, { "requirements.txt": "--no-index\nnowhere-at-all==1\n" });
    const id = await submit(ITEMS, {}, "needy");
    const { status, reason } = await engine.server.ended("needy", id);
    expect([status, reason?.code]).toEqual(["status_worker_error", "requirements_failed"]);
    expect(reason?.message).toMatch(/^requirements.txt failed: there is no nowhere-at-all==1 for Python 3/);
    const { out } = engine.server.cli(["logs", "needy", id]);
    expect(out).toMatch(/ERROR: No matching distribution found for nowhere-at-all==1/);
    await gone(id);
  });

  it("ends if the files of its project are gone, and says what to do", async () => {
    deploy("lost", {}, {}, { "only.txt": "here" });
    const projects = join(engine.server.dataDir, "projects");
    for (const project of readdirSync(projects))
      if (existsSync(join(projects, project, "only.txt")))
        rmSync(join(projects, project), { recursive: true });
    const id = await submit(ITEMS, {}, "lost");
    const { status, reason } = await engine.server.ended("lost", id);
    expect([status, reason?.code]).toEqual(["status_worker_error", "worker_start_failed"]);
    expect(reason?.message).toContain(
      "the files of the version are not in the state of the server: deploy it again",
    );
    await gone(id);
  });

  it("ends if its predictor cannot be set up", async () => {
    deploy("broken", {}, { fails: true });
    const job = await engine.server.ended("broken", await submit(ITEMS, {}, "broken"));
    expect(job.reason?.message).toContain("OSError: no model");
    expect(job.status).toBe("status_worker_error");
  });
});
