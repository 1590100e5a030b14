/** Two servers in pods, with PostgreSQL and S3: what a job and real-time clients see when the active one dies. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { processes } from "../harness/processes.ts";
import { isS3Installed } from "../harness/stores.ts";
import { RUN } from "./kubectl.ts";
import { RetryingLoad } from "./retrying-load.ts";
import { Servers } from "./servers.ts";

const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, list):
            time.sleep(0.05)
            return [item * item for item in payload]
        return payload
`;
const APIS = `
- name: squares
  kind: BatchAPI
  predictor: {path: predictor.py}
  compute: {cpu: 50m}
- name: echo
  kind: RealtimeAPI
  predictor: {path: predictor.py}
  compute: {cpu: 50m}
  autoscaling: {min_replicas: 2, init_replicas: 2}
`;
const ITEMS = Array.from({ length: 800 }, (_, id) => id);
const BATCHES = 400;
const CLIENTS = 4;
/** What a takeover takes is printed; this is the patience of a test on a busy machine. */
const TAKEOVER_MS = 30_000;

let servers: Servers;
let jobs = 0;
function useServers(): void {
  beforeAll(async () => {
    servers = await Servers.prepare("ml-servers");
    await servers.start();
    servers.deploy({ "predictor.py": PREDICTOR, "quern.yaml": APIS });
  }, 300_000);
  afterAll(() => servers?.stop(), 180_000);
}

async function jobInTheMiddle(): Promise<string> {
  const output = { store_path: `s3://bucket/out-${++jobs}` };
  const item_list = { items: ITEMS, batch_size: ITEMS.length / BATCHES };
  const id = await servers.submit("squares", { workers: 3, output, item_list });
  await servers.jobIs("squares", id, "has begun", ({ batch_metrics }) => batch_metrics.succeeded > 40);
  return id;
}

/** Every prediction once, in the order of the input. */
async function expectExact(id: string): Promise<void> {
  const job = await servers.jobIs("squares", id, "ends", ({ end_time }) => end_time !== undefined);
  expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: BATCHES, failed: 0 } });
  const rows = (await (await servers.fetch(`/squares/${id}/results`)).text()).trim().split("\n");
  const predictions = rows.map((row) => (JSON.parse(row) as { prediction: number }).prediction);
  expect(predictions).toEqual(ITEMS.map((item) => item * item));
}

/** Does something to what servers need, under load and in the middle of a job. No request fails. */
async function goOn(what: string, how: () => Promise<void>): Promise<void> {
  const id = await jobInTheMiddle();
  const load = new RetryingLoad(`${servers.url}/echo`, servers.key, CLIENTS);
  await eventually("requests are answered", () => load.sent.length > 50);
  const atMs = performance.now();
  await how();
  const overMs = performance.now() - atMs;
  await expectExact(id);
  const { failed, total, longestMs } = await load.stop();
  console.log(
    `${what} for ${(overMs / 1_000).toFixed(1)} s: its job ended ${((performance.now() - atMs) / 1_000).toFixed(1)} s after that began; ${total} requests, ${failed.length} failed, none answered for ${(longestMs / 1_000).toFixed(1)} s`,
  );
  expect(failed).toEqual([]);
  await eventually("one is active", async () => (await servers.active()).length === 1, 60_000);
}

/** Does something to the active server, under load and in the middle of a job. Prints what happened. */
async function disturb(
  what: string,
  how: (pod: string) => void | Promise<void>,
  afterwards = () => {},
): Promise<string> {
  const [before] = await servers.active();
  const id = await jobInTheMiddle();
  const load = new RetryingLoad(`${servers.url}/echo`, servers.key, CLIENTS);
  await eventually("requests are answered", () => load.sent.length > 50);
  const atMs = performance.now();
  await how(before!);
  const seconds = () => ((performance.now() - atMs) / 1_000).toFixed(1);
  const isAnother = async () => (await servers.active()).some((pod) => pod !== before);
  await eventually("another one is active", isAnother, 60_000);
  const takenMs = performance.now() - atMs;
  afterwards();
  const { batch_metrics } = await servers.jobIs("squares", id, "is known", () => true);
  await servers.jobIs(
    "squares",
    id,
    "goes on",
    (job) => job.batch_metrics.succeeded > batch_metrics.succeeded,
  );
  const jobSeconds = seconds();
  await expectExact(id);
  const { failed, total, longestMs } = await load.stop();
  console.log(
    `${what}: taken over after ${(takenMs / 1_000).toFixed(1)} s, its job goes on after ${jobSeconds} s; ${total} requests, ${failed.length} failed (${[...new Set(failed.map(({ outcome }) => outcome))].join(", ")}), none answered for ${(longestMs / 1_000).toFixed(1)} s`,
  );
  expect(takenMs).toBeLessThan(TAKEOVER_MS);
  // Only those that were in flight at one moment: that of its death.
  expect(failed.length).toBeLessThanOrEqual(CLIENTS);
  const lastStartMs = Math.max(...failed.map(({ startedMs }) => startedMs));
  expect(failed.filter(({ endedMs }) => endedMs < lastStartMs)).toEqual([]);
  return before!;
}

describe.runIf(isS3Installed)("two servers in pods", () => {
  useServers();

  it("go on exactly after the pod of the active one was deleted without a moment to end", async () => {
    const before = await disturb("a deleted pod", async (pod) => {
      await servers.beside("delete", "pod", pod, "--grace-period=0", "--force");
    });
    expect(await servers.active()).not.toContain(before);
    servers.kubectl("rollout", "status", "deployment/quern", "--timeout=120s");
  });

  it("go on exactly after the controller of the active one was stopped, and woken (SIGSTOP)", async () => {
    let stopped = 0;
    const stop = (pod: string) => {
      stopped = servers.controllerOf(pod);
      process.kill(stopped, "SIGSTOP");
    };
    const before = await disturb("a stopped controller", stop, () => wake(stopped));
    // It has lost the database: it waits now, and gets no requests.
    expect(await servers.active()).not.toContain(before);
    servers.kubectl("wait", "--for=condition=Ready", `pod/${before}`, "--timeout=60s");
  });

  it("are both there before an upgrade ends the active one", async () => {
    const load = new RetryingLoad(`${servers.url}/echo`, servers.key, CLIENTS);
    const [before] = await servers.active();
    await servers.beside("rollout", "restart", "deployment/quern");
    await servers.beside("rollout", "status", "deployment/quern", "--timeout=120s");
    await eventually("another one is active", async () => {
      const active = await servers.active();
      return active.length === 1 && active[0] !== before;
    });
    const { failed, total, longestMs } = await load.stop();
    console.log(
      `an upgrade: ${total} requests, ${failed.length} failed, none answered for ${(longestMs / 1_000).toFixed(1)} s`,
    );
    expect(failed).toEqual([]);
    expect(longestMs).toBeLessThan(TAKEOVER_MS);
  });
});

/** Too long for every run: `QUERN_TEST_LONG=1 npm run test:cluster -- standby`. */
describe.runIf(isS3Installed && process.env.QUERN_TEST_LONG === "1")("what servers in pods need", () => {
  useServers();

  it("may be killed: PostgreSQL, for three seconds", () =>
    goOn("PostgreSQL killed", async () => {
      servers.postgres.kill();
      await pause(3_000);
      servers.postgres.begin();
    }));

  it("may stand still: the API server, for a minute (SIGSTOP)", () =>
    goOn("the API server stopped", async () => {
      const apiServer = processes().find(({ command }) => command.includes(`${RUN}/pki/apiserver.crt`))!;
      process.kill(apiServer.pid, "SIGSTOP");
      try {
        await pause(60_000);
      } finally {
        process.kill(apiServer.pid, "SIGCONT");
      }
    }));
});

/** Unless its parent has ended it: that waits for ten seconds. */
function wake(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
