/**
 * Batches that crash the server or the whole machine: which batches are charged
 * (docs/decisions/0005-workers-after-a-crash.md).
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { killAll, processes } from "../../harness/processes.ts";
import { TestServer } from "../../harness/server.ts";

/**
 * Logs each batch that it begins. `kill`: kills its controller when other batches run too, unless it is alone. `crash`:
 * reports it, and waits for the end of the machine.
 */
const PREDICTOR = `
import os, signal, time
def controller():
    # A forked worker is a child of its template.
    pid = os.getppid()
    while b"__controller" not in open("/proc/%d/cmdline" % pid, "rb").read():
        pid = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[1])
    return pid
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload):
        [item] = payload
        with open(self.config["log"], "a") as log: log.write("%s\\n" % item["id"])
        if item.get("do") == "kill":
            until = time.monotonic() + 3
            while time.monotonic() < until:
                begun = open(self.config["log"]).read().splitlines()
                if all(begun.count(other) >= begun.count(item["id"]) for other in item["beside"]): break
            os.kill(controller(), signal.SIGKILL)
            time.sleep(20)
        if item.get("do") == "crash":
            open(self.config["crash"], "w").close()
            time.sleep(60)
        time.sleep(item.get("seconds", 0))
`;

const server = new TestServer();
const log = join(server.dir, "log");
const crash = join(server.dir, "crash");
const begun = (id: string) =>
  readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => line === id).length;
const failuresOf = async (id: string) =>
  (
    (await (await server.fetch(`/jobs/${id}/failures`)).json()) as {
      failures: { batch_index: number; receive_count: number }[];
    }
  ).failures;

beforeAll(async () => {
  await server.start();
  const config = JSON.stringify({ log, crash });
  server.deploy({
    "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: ${config}}\n  compute: {cpu: 100m}\n`,
    "predictor.py": PREDICTOR,
  });
});
afterAll(() => server.stop());

describe("a batch that kills its server each time", () => {
  it("finally runs alone and is charged for begun attempts; concurrent batches are not charged", async () => {
    writeFileSync(log, "");
    const slow = (id: string) => ({ id, seconds: 4 });
    const beside = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [slow("another job's")], batch_size: 1 },
    });
    await eventually("the other job's batch is in hand", () => begun("another job's") === 1);
    const poison = { id: "poison", do: "kill", beside: ["slow", "another job's"] };
    const items = [slow("slow"), poison, ...Array.from({ length: 20 }, (_, id) => ({ id }))];
    const id = await server.submit("jobs", {
      workers: 2,
      queue_dead_letter_queue: { arn: "killers", max_receive_count: 2 },
      item_list: { items, batch_size: 1 },
    });
    const job = await server.ended("jobs", id, 120_000);
    expect(job).toMatchObject({
      status: "status_worker_error",
      batch_metrics: { succeeded: items.length - 1, failed: 2 },
    });
    expect(await failuresOf(id)).toMatchObject([{ batch_index: 1, receive_count: 2 }]);
    // Three times without a charge, then one attempt each time.
    expect(begun("poison")).toBe(3 + 2);
    expect((await server.ended("jobs", beside)).status).toBe("status_succeeded");
  }, 150_000);
});

/**
 * Everything that a power cut destroys: every process, the contents of memory-mapped files, and the temporary
 * directory.
 */
async function crashMachine(): Promise<void> {
  const parent = server.parent!;
  const children = processes().filter(({ ppid }) => ppid === parent.pid);
  const exited = new Promise((resolve) => parent.once("exit", resolve));
  killAll([parent.pid!, ...children.map(({ pid }) => pid), ...server.workers()]);
  await exited;
  await eventually("nothing is left", () => server.workers().length === 0);
  // Before the next server can lease the batch again.
  rmSync(crash);
  const notes = join(server.dataDir, "notes");
  for (const name of readdirSync(notes)) writeFileSync(join(notes, name), Buffer.alloc(32));
  const db = server.openDatabase();
  await db.run("UPDATE owner SET boot = 'the boot before'");
  await db.close();
}

describe("a batch that crashes the machine each time", () => {
  it("is found among all batches that may have run, and only it is charged", async () => {
    writeFileSync(log, "");
    const items = Array.from({ length: 800 }, (_, id) => ({ id, ...(id === 400 ? { do: "crash" } : {}) }));
    const id = await server.submit("jobs", { workers: 2, item_list: { items, batch_size: 1 } });
    let crashes = 0;
    while ((await server.job("jobs", id)).end_time === undefined) {
      await eventually(
        "the machine crashes, or the job ends",
        async () =>
          statSync(crash, { throwIfNoEntry: false }) !== undefined ||
          (await server.job("jobs", id)).end_time !== undefined,
        60_000,
      );
      if (statSync(crash, { throwIfNoEntry: false }) === undefined) break;
      crashes++;
      expect(crashes).toBeLessThan(8);
      await crashMachine();
      await server.start();
    }
    expect(await server.job("jobs", id)).toMatchObject({
      status: "status_worker_error",
      batch_metrics: { succeeded: 799, failed: 1 },
    });
    expect(await failuresOf(id)).toMatchObject([{ batch_index: 400, receive_count: 1 }]);
    // Once for an unknown cause, three times without a charge, then alone.
    expect(crashes).toBe(5);
  }, 200_000);
});
