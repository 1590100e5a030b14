/** docs/contract/jobs.md#workers: when the workers of a job worked, and why they ended. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { jobWorkersSchema } from "../../../src/contracts/http/explain-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config, job_spec):
        self.until = config["until"]
        if config.get("broken"): raise ValueError("no model here")
    def predict(self, payload):
        if payload == ["die"] and not os.path.exists(self.until + ".died"):
            open(self.until + ".died", "w").close()
            os._exit(3)
        while payload == ["wait"] and not os.path.exists(self.until): time.sleep(0.02)
        return payload
`;
const server = new TestServer();
const until = join(server.dir, "until");
const config = `{until: ${until}}`;
const api = (name: string, given: string) =>
  `- name: ${name}\n  kind: BatchAPI\n  compute: {cpu: 100m}\n  predictor: {path: p.py, config: ${given}}\n`;

beforeAll(async () => {
  await server.start();
  const both = api("jobs", config) + api("broken", `{until: ${until}, broken: true}`);
  await server.deployBeside({ "quern.yaml": both, "p.py": PREDICTOR });
});
afterAll(() => server.stop());

const workersOf = async (name: string, job: string) => {
  const response = await server.fetch(`/${name}/${job}/workers`, { headers: { connection: "close" } });
  return jobWorkersSchema.parse(await response.json()).workers;
};
const submit = (name: string, items: string[]) =>
  server.submit(name, { workers: 1, item_list: { items, batch_size: 1 } });

it("shows what a worker has in hand, how another died, and when each began and ended", async () => {
  const job = await submit("jobs", ["die", "wait"]);
  await eventually("a worker waits in the last batch", async () => {
    const [died, works] = await workersOf("jobs", job);
    return died?.how === "died" && works?.batch_in_hand === 1;
  });
  const [died, works] = await workersOf("jobs", job);
  expect(died!.reason).toBe("exited with code 3 with batch 0 in hand");
  expect([works!.ended_time, works!.how, works!.workers]).toEqual([null, null, 1]);
  expect(works!.in_hand_s).toBeGreaterThanOrEqual(0);
  const now = await server.cliBeside(["job", "workers", "jobs", job]);
  expect(now.out).toMatch(/died: exited with code 3 with batch 0 in hand[\s\S]*batch 1 for /);
  writeFileSync(until, "");
  await server.ended("jobs", job);
  await eventually("it is recorded", async () => {
    const all = await workersOf("jobs", job);
    return all.every(({ ended_time }) => ended_time !== null);
  });
  const ended = await workersOf("jobs", job);
  expect(ended.map(({ how }) => how)).toEqual(["died", "ended"]);
  for (const { started_time, ready_time, ended_time } of ended) {
    const times = [started_time, ready_time!, ended_time!];
    expect([...times].sort()).toEqual(times);
  }
  expect(ended[1]!.batches).toBe(1);
});

it("says that a worker could not be set up, and by which exception", async () => {
  const job = await submit("broken", ["a"]);
  await server.ended("broken", job);
  await eventually("it is recorded", async () => (await workersOf("broken", job))[0]?.how === "failed");
  expect(await workersOf("broken", job)).toMatchObject([
    { ready_time: null, reason: expect.stringContaining("ValueError: no model here"), batches: 0 },
  ]);
});

it("says after a kill -9 of the controller which workers ended with it", async () => {
  writeFileSync(`${until}.died`, "");
  const other = `${until}.2`;
  const both = api("jobs", `{until: ${other}}`);
  await server.deployBeside({ "quern.yaml": both, "p.py": PREDICTOR });
  const job = await submit("jobs", ["wait"]);
  const hasOne = async () => (await workersOf("jobs", job).catch(() => []))[0];
  await eventually("it is in hand", async () => (await hasOne())?.batch_in_hand === 0);
  const db = server.openDatabase();
  try {
    const rows = "SELECT worker_id FROM worker_spans WHERE job_id = ? AND ready_time IS NOT NULL";
    await eventually("it is durable", async () => (await db.all(rows, [job])).length === 1);
  } finally {
    await db.close();
  }
  process.kill(server.child("controller"), "SIGKILL");
  await eventually("the next one has another worker", async () => {
    const all = await workersOf("jobs", job).catch(() => []);
    return all.length === 2 && all[0]!.how === "lost" && all[1]!.batch_in_hand === 0;
  });
  writeFileSync(other, "");
  await server.ended("jobs", job);
});

it("has no worker for a job that is not there", async () => {
  const missing = await server.fetch("/jobs/01aryz6s41tsv4rrffq69g5fav/workers");
  expect(missing.status).toBe(404);
});
