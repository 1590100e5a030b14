/**
 * `compute.mem` enforced by the kernel: runs in a kernel of its own, whose groups control memory
 * (scripts/own-kernel.mjs).
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimDelegatedCgroup } from "../../src/engine/delegated-cgroup.ts";
import { eventually } from "../harness/eventually.ts";
import { root, TestServer } from "../harness/server.ts";

const ROOT = "/sys/fs/cgroup";
/** Beside systemd's: its root has memory to give. */
const UNIT = join(ROOT, "unit");
const MIB = 2 ** 20;

const PREDICTOR = `
import os, time
def take(mib):
    held = bytearray(mib << 20)
    held[::4096] = b"x" * (mib << 8)
    return held
def daemon(work):
    """Out of the worker's session, and nobody's child."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(3, 100)
            work()
        os._exit(0)
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload):
        item = payload[0] if isinstance(payload, list) else payload
        do = item.get("do")
        if do: print("about to", do, flush=True)
        if do == "take": self.held = take(item["mib"])
        if do == "daemon takes":
            daemon(lambda: (take(item["mib"]), time.sleep(300)))
            time.sleep(60)
        if do == "daemon stays":
            daemon(lambda: time.sleep(300))
            time.sleep(0.2)
            if item.get("leave"): os._exit(3)
        return "done"
`;
const PROJECT = {
  "predictor.py": PREDICTOR,
  "quern.yaml":
    "- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  compute: {mem: 200Mi}\n" +
    "- name: unlimited\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n" +
    "- name: live\n  predictor: {path: predictor.py}\n  compute: {mem: 200Mi}\n",
};

const read = (...path: string[]) => readFileSync(join(UNIT, ...path), "utf8");
const groups = () =>
  readdirSync(UNIT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const workerGroups = () => groups().filter((name) => name !== "quern");
const replicaGroups = () => groups().filter((name) => name.startsWith("r-"));

/** As systemd marks a delegated group. */
function mark(group: string): void {
  const code = "import os, sys; os.setxattr(sys.argv[1], 'user.delegate', b'1')";
  execFileSync("python3", ["-c", code, group]);
}

/** The server's log about its control group. */
async function memoryLimits(server: TestServer): Promise<unknown> {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const response = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
  return ((await response.json()) as { memory_limits?: unknown }).memory_limits;
}

describe("a server with its own control group", () => {
  const server = new TestServer({}, UNIT);
  beforeAll(async () => {
    mkdirSync(UNIT);
    mark(UNIT);
    await server.start();
    server.deploy(PROJECT);
  });
  afterAll(async () => {
    await server.stop();
    await eventually("the groups of workers are gone", () => workerGroups().length === 0);
    for (const name of groups()) rmdirSync(join(UNIT, name));
    rmdirSync(UNIT);
  });

  const run = async (api: string, items: unknown[]) => {
    const id = await server.submit(api, { workers: 1, item_list: { items, batch_size: 1 } });
    return server.ended(api, id);
  };

  it("moves into a leaf group, has a group for each worker, and reports it", async () => {
    expect(read("cgroup.procs")).toBe("");
    expect(read("quern", "cgroup.procs").trim().split("\n")).toHaveLength(3);
    const [name, ...others] = workerGroups();
    expect(others).toEqual([]);
    expect(Number(read(name!, "memory.max"))).toBe(200 * MIB);
    expect(read(name!, "cgroup.procs").trim()).toBe(String(server.workers()[0]));
    expect(await memoryLimits(server)).toBe("kernel");
    expect(server.cli(["doctor"]).out).toContain("the kernel enforces the compute.mem of each worker");
  });

  it("loses only a worker that takes all memory at once: its batch is charged, the others succeed", async () => {
    const items = [{}, {}, { do: "take", mib: 1500 }, {}, {}];
    const job = await run("jobs", items);
    expect(job).toMatchObject({
      status: "status_worker_oom",
      batch_metrics: { succeeded: 4, failed: 1 },
      reason: { evidence: { batch_index: 2, signal: "SIGKILL", out_of_memory: "limit" } },
    });
    const { failures } = (await (await server.fetch(`/jobs/${job.job_id}/failures`)).json()) as {
      failures: { error: { message: string } }[];
    };
    // The server may have seen it above the limit. If not, only the kernel's count of the group shows it.
    expect(failures[0]!.error.message).toMatch(
      /(used \d+ MiB, over|needed more than) its compute\.mem of 200 MiB/,
    );
    expect(await (await server.post("/live", {})).json()).toBe("done");
  });

  it("counts the memory of a detached process, and ends it with its worker", async () => {
    const job = await run("jobs", [{ do: "daemon takes", mib: 300 }]);
    expect(job).toMatchObject({
      status: "status_worker_oom",
      reason: { evidence: { out_of_memory: "limit" } },
    });
    expect(await run("jobs", [{ do: "daemon stays", leave: true }])).toMatchObject({
      status: "status_worker_error",
    });
    expect(await run("jobs", [{ do: "daemon stays" }])).toMatchObject({ status: "status_succeeded" });
    await eventually("no group but the replica's is left", () => workerGroups().length === 1);
  });

  it("tells a worker's limit from that of the unit, and does not blame the worker for the latter", async () => {
    writeFileSync(join(UNIT, "memory.max"), String(450 * MIB));
    const job = await run("unlimited", [{ do: "take", mib: 500 }]);
    writeFileSync(join(UNIT, "memory.max"), "max");
    expect(job).toMatchObject({
      status: "status_worker_oom",
      reason: { evidence: { signal: "SIGKILL", out_of_memory: "kernel" } },
    });
  });

  it("keeps a replica in its group when the controller is killed, and still reports why it died", async () => {
    const [name] = replicaGroups();
    process.kill(server.child("controller"), "SIGKILL");
    await eventually("the next controller serves", async () => (await memoryLimits(server)) === "kernel");
    expect(replicaGroups()).toEqual([name]);
    const response = await server.post("/live", { do: "take", mib: 300 });
    expect(response.status).toBeGreaterThanOrEqual(500);
    await eventually("another one serves", async () => {
      const now = replicaGroups();
      return now.length === 1 && now[0] !== name && (await server.post("/live", {})).status === 200;
    });
    expect(server.cli(["logs", "live"]).out).toMatch(
      new RegExp(`server replica ${name} was killed because it .* its compute.mem of 200 MiB`),
    );
  });

  it("ends the processes that a killed worker of a job left behind", async () => {
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [{ do: "daemon stays" }, { do: "daemon takes", mib: 10 }, {}], batch_size: 1 },
    });
    await eventually("the second batch runs", async () => {
      return (await server.job("jobs", id)).batch_metrics.succeeded === 1;
    });
    const before = workerGroups();
    expect(before).toHaveLength(2);
    process.kill(server.child("controller"), "SIGKILL");
    await eventually(
      "the job goes on",
      async () => (await server.job("jobs", id).catch(() => undefined)) !== undefined,
    );
    server.cli(["delete", "jobs", id]);
    await eventually("the group of the killed worker is gone", () =>
      before.filter((name) => existsSync(join(UNIT, name))).every((name) => name.startsWith("r-")),
    );
  });
});

describe("a control group that was not delegated", () => {
  it("is left unchanged if other processes are in it", () => {
    expect(claimDelegatedCgroup("python3")).toBeUndefined();
  });

  it("is left unchanged, and used only after it was delegated", () => {
    const group = join(ROOT, "scope");
    mkdirSync(group);
    const program = join(root, "dist", "engine", "delegated-cgroup.js");
    const claim = () => {
      const code = `import(${JSON.stringify(program)}).then((m) => console.log(m.claimDelegatedCgroup("python3")))`;
      const shell = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
      return execFileSync("sh", ["-c", shell, group, process.execPath, "-e", code], {
        encoding: "utf8",
      }).trim();
    };
    expect(claim()).toBe("undefined");
    expect(readdirSync(group)).not.toContain("quern");
    mark(group);
    expect(claim()).toBe(group);
    rmdirSync(join(group, "quern"));
    rmdirSync(group);
  });
});
