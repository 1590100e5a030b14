/**
 * Batches that raise, exit, crash, hang and eat memory: which batches are charged, and what users see
 * (docs/contract/failing-batches.md).
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";
import type { JobView } from "../../harness/views.ts";

const PREDICTOR = `
import ctypes, os, subprocess, sys, time
class PythonPredictor:
    def __init__(self, config):
        if config.get("init_mib"):
            self.held = bytearray(config["init_mib"] << 20)
            self.held[::4096] = b"x" * (config["init_mib"] << 8)
            time.sleep(20)
    def predict(self, payload):
        for item in payload:
            do = item.get("do")
            if do: print("about to %s, batch of %s" % (do, item.get("id")), flush=True)
            if do == "raise": raise ValueError("no good")
            if do == "exit": os._exit(7)
            if do == "segfault": ctypes.string_at(0)
            if do == "hang": time.sleep(20)
            if "begun" in item: open(item["begun"], "w").close()
            if do == "slow": time.sleep(item["seconds"])
            if do == "hog":
                held = []
                for _ in range(item.get("mib", 300) // 10):
                    held.append(bytearray(10 << 20)); held[-1][::4096] = b"x" * 2560
                    time.sleep(0.002)
                if "mib" not in item: time.sleep(20)
            if do == "children":
                code = "import time; held = bytearray(%d << 20); held[::4096] = b'x' * (%d << 8); print(1, flush=True); time.sleep(30)" % (item["mib"], item["mib"])
                children = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
                for child in children: child.stdout.readline()
                time.sleep(20)
`;

type Evidence = NonNullable<NonNullable<JobView["reason"]>["evidence"]>;

const server = new TestServer();
let killsBefore = 0;
beforeAll(async () => {
  killsBefore = kernelKills();
  await server.start();
  server.deploy({
    "quern.yaml":
      "- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, timeout: 6s}\n  compute: {mem: 200Mi}\n" +
      "- name: patient\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  compute: {mem: 200Mi}\n" +
      "- name: heavy\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: {init_mib: 300}}\n  compute: {mem: 200Mi}\n" +
      "- name: unlimited\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
    "predictor.py": PREDICTOR,
  });
});
afterAll(() => server.stop());

interface Failure {
  batch_index: number;
  receive_count: number;
  error: { type: string; message: string; traceback: string };
}
const failuresOf = async (api: string, id: string) =>
  ((await (await server.fetch(`/${api}/${id}/failures`)).json()) as { failures: Failure[] }).failures;

it("every kind of poison batch is charged only for itself, and can be found", async () => {
  const poison = ["raise", "exit", "segfault", "hog", "hang"];
  const items: Record<string, unknown>[] = Array.from({ length: 10_000 }, (_, id) => ({ id }));
  for (const [i, kind] of poison.entries()) items.splice(1000 + i * 1999, 0, { do: kind, id: kind });
  const id = await server.submit("jobs", {
    workers: 2,
    queue_dead_letter_queue: { arn: "poison", max_receive_count: 2 },
    item_list: { items, batch_size: 1 },
  });
  const job = await server.ended("jobs", id, 120_000);
  expect(job).toMatchObject({
    status: "status_worker_oom",
    total_batch_count: 10_005,
    batches_in_queue: 0,
    batch_metrics: { succeeded: 10_000, failed: 10 },
  });
  expect(job.reason).toMatchObject({
    code: "out_of_memory",
    evidence: {
      batch_index: items.findIndex((item) => item.do === "hog"),
      out_of_memory: "limit",
      memory_limit_bytes: 200 * 2 ** 20,
    },
  });
  const evidence = job.reason!.evidence as Evidence;
  expect(evidence.peak_memory_bytes).toBeGreaterThan(200 * 2 ** 20);
  expect(evidence.last_lines!.join("\n")).toContain("about to hog, batch of hog");

  const failures = await failuresOf("jobs", id);
  expect(failures.map(({ batch_index }) => items[batch_index]!.do)).toEqual(poison);
  expect(failures.map(({ receive_count }) => receive_count)).toEqual([2, 2, 2, 2, 2]);
  const [raised, exited, crashed, hogged, hung] = failures.map(({ error }) => error);
  expect(raised).toMatchObject({ type: "ValueError", message: "no good" });
  expect(exited!.message).toContain("exited with code 7");
  expect(exited!.traceback).toContain("about to exit, batch of exit");
  expect(crashed!.message).toContain("SIGSEGV");
  expect(hogged!.type).toBe("OutOfMemory");
  expect(hogged!.message).toMatch(/used [2-9]\d\d MiB, over its compute\.mem of 200 MiB/);
  expect(hung).toMatchObject({ type: "PredictionTimeout" });
  const { out } = server.cli(["queue", "messages", "poison", "-o", "json"]);
  const letters = (JSON.parse(out) as { messages: { body: string; attributes: Record<string, string> }[] })
    .messages;
  expect(letters.map(({ body }) => (JSON.parse(body) as { do: string }[])[0]!.do).sort()).toEqual(
    [...poison].sort(),
  );
  expect(new Set(letters.map(({ attributes }) => attributes.receive_count))).toEqual(new Set(["2"]));
  const shown = server.cli(["get", "jobs", id]).out;
  expect(shown).toContain("status: out of memory");
}, 150_000);

describe("memory over compute.mem", () => {
  it("includes the memory of child processes", async () => {
    const items = [{ do: "children", mib: 90 }];
    // On a busy machine the children may take longer to start than the timeout of the other API.
    const id = await server.submit("patient", { workers: 1, item_list: { items, batch_size: 1 } });
    const job = await server.ended("patient", id);
    expect(job.status).toBe("status_worker_oom");
    expect(job.reason!.evidence!.peak_memory_bytes).toBeGreaterThan(200 * 2 ** 20);
    await eventually("its children are gone", () => server.workers().length === 0);
  });

  it("in __init__ ends the job at once, with a cure", async () => {
    const id = await server.submit("heavy", { workers: 1, item_list: { items: [{}], batch_size: 1 } });
    const job = await server.ended("heavy", id);
    expect(job).toMatchObject({
      status: "status_worker_oom",
      reason: { code: "set_up_failed", hint: expect.stringContaining("compute.mem") as string },
    });
  });

  it("never ends a worker that stays below the limit or has none", async () => {
    for (const api of ["jobs", "unlimited"]) {
      const items = [{ do: "hog", mib: api === "jobs" ? 80 : 400 }];
      const id = await server.submit(api, { workers: 1, item_list: { items, batch_size: 1 } });
      expect((await server.ended(api, id)).status).toBe("status_succeeded");
    }
  });
});

/** Processes of the whole machine that the kernel has killed for memory, as the server counts them. */
function kernelKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync("/proc/vmstat", "latin1"))?.[1] ?? 0);
}

/** For so long after such a kill, a worker that dies by SIGKILL may have been another one. */
const KILLS_COUNT_MS = 33_000;

/** A memory control group, if this process may make one. */
function memoryGroup(name: string, bytes: number): ((pid: number) => void) | undefined {
  const [v1, v2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
  const root = existsSync(join(v1, "memory.limit_in_bytes")) ? v1 : v2;
  try {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, root === v1 ? "memory.limit_in_bytes" : "memory.max"), String(bytes));
  } catch {
    return undefined;
  }
  return (pid) => writeFileSync(join(root, name, "cgroup.procs"), String(pid));
}

describe("a worker that the kernel kills", () => {
  const name = `quern-test-${process.pid}`;
  const enter = memoryGroup(name, 120 * 2 ** 20);
  afterAll(() => {
    for (const root of ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"])
      if (existsSync(join(root, name))) rmdirSync(join(root, name));
  });

  it.runIf(enter !== undefined)(
    "for memory is distinguished from one that a user kills",
    async () => {
      const run = async (item: unknown, act: (pid: number) => void | Promise<void>) => {
        await eventually("no worker of a job before is left", () => server.workers().length === 0);
        const items = [{ do: "slow", seconds: 1 }, item];
        const id = await server.submit("unlimited", { workers: 1, item_list: { items, batch_size: 1 } });
        await eventually(
          "its worker runs",
          async () => (await server.job("unlimited", id)).worker_counts?.running === 1,
        );
        await act(server.workers()[0]!);
        return server.ended("unlimited", id);
      };
      const begun = join(server.dir, "begun");
      const killedByUser = () => {
        rmSync(begun, { force: true });
        return run({ do: "slow", seconds: 20, begun }, async (pid) => {
          // A worker that dies between two batches is charged to none of them.
          await eventually("predict() has the second batch", () => existsSync(begun));
          process.kill(pid, "SIGKILL");
        });
      };
      let killed = await killedByUser();
      // Tests beside this one let the kernel kill processes, too.
      for (; kernelKills() !== killsBefore; killed = await killedByUser()) {
        killsBefore = kernelKills();
        await new Promise((resolve) => setTimeout(resolve, KILLS_COUNT_MS));
      }
      expect(killed).toMatchObject({
        status: "status_worker_error",
        reason: { evidence: { signal: "SIGKILL" } },
      });
      expect(killed.reason!.evidence!.out_of_memory).toBeUndefined();
      const oom = await run({ do: "hog" }, enter!);
      expect(oom).toMatchObject({
        status: "status_worker_oom",
        reason: { evidence: { signal: "SIGKILL", out_of_memory: "kernel" } },
      });
      expect((await failuresOf("unlimited", oom.job_id))[0]!.error.message).toContain("killed by the kernel");
    },
    240_000,
  );
});

describe("GPUs", () => {
  const project = (gpu: number) => ({
    "quern.yaml": `- name: seen\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: {log: ${JSON.stringify(join(server.dir, "gpus.log"))}}}\n  compute: {gpu: ${gpu}}\n`,
    "predictor.py": `
import os, time
class PythonPredictor:
    def __init__(self, config): self.log = config["log"]
    def predict(self, payload):
        with open(self.log, "a") as log: log.write(os.environ.get("CUDA_VISIBLE_DEVICES", "all") + "\\n")
        time.sleep(0.05)
`,
  });
  const seen = () => readFileSync(join(server.dir, "gpus.log"), "utf8").trim().split("\n");
  const job = { workers: 2, item_list: { items: Array.from({ length: 30 }, () => ({})), batch_size: 1 } };

  it("are refused at deployment if the machine has too few", () => {
    expect(() => server.deploy(project(9))).toThrow(
      /quern\.yaml:4:\d+: seen: compute\.gpu: 9 requested, but this server offers/,
    );
  });

  it("are assigned by masks, each to one worker; a worker that requests none sees none", async () => {
    await server.stopProcesses();
    await server.start({}, ["--gpus", "4,6"]);
    server.deploy(project(1));
    writeFileSync(join(server.dir, "gpus.log"), "");
    await server.ended("seen", await server.submit("seen", job));
    expect(new Set(seen())).toEqual(new Set(["4", "6"]));
    server.deploy(project(0));
    writeFileSync(join(server.dir, "gpus.log"), "");
    await server.ended("seen", await server.submit("seen", job));
    expect(new Set(seen())).toEqual(new Set([""]));
  });
});
