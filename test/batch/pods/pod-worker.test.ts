/** A worker of a job in a pod: a real launcher, as a plain process, and a real worker. */
import { afterEach, describe, expect, it } from "vitest";
import type { LeaseEntries } from "../../../src/batch/deliveries/lease-runs.ts";
import { JobPod } from "../../../src/batch/pods/job-pod.ts";
import { PodWorker } from "../../../src/batch/pods/pod-worker.ts";
import { BatchWorker } from "../../../src/batch/workers/batch-worker.ts";
import type { WorkerDeath } from "../../../src/batch/workers/worker-death.ts";
import type { Pod } from "../../../src/kubernetes/pod.ts";
import type { TlsAddress } from "../../../src/protocol/connect-socket.ts";
import { LaunchedPod, ProjectServer } from "../../harness/launched-pod.ts";
import { LONG_LIFE } from "../../harness/lifetime.ts";
import { WORKER_TOKEN } from "../../harness/started-worker.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == ["die"]:
            print("about to die", flush=True)
            os.kill(os.getpid(), 11)
        time.sleep(30)
`;
const BATCH = 3;
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const POD: Pod = {
  metadata: { name: "pod", uid: "1" },
  status: { phase: "Running", podIP: "127.0.0.1", conditions: [{ type: "PodScheduled", status: "True" }] },
};

async function launch() {
  const projects = await ProjectServer.start();
  stops.push(() => projects.stop());
  const variables = { QUERN_ENDS_WITH_WORKER: "true" };
  const launched = await LaunchedPod.start(
    projects.url(await projects.add({ "predictor.py": PREDICTOR })),
    variables,
  );
  stops.push(() => launched.stop());
  await launched.untilReadiness(/^503 starting/);
  const pod = new JobPod(POD, { jobId: "j", api: "a", isSettled: true });
  const removed: string[] = [];
  const next = () =>
    new PodWorker(pod, {
      address: launched.address as TlsAddress,
      launcher: { host: "127.0.0.1", port: launched.healthPort, token: WORKER_TOKEN },
      memoryLimitBytes: undefined,
      remove: () => removed.push(pod.name),
    });
  return { launched, pod, next, removed };
}

/** The worker is ready and has one batch. */
async function working(process: PodWorker, items: string) {
  let tell: (death: WorkerDeath) => void = () => {};
  const death = new Promise<WorkerDeath>((resolve) => {
    tell = resolve;
  });
  const worker = await new Promise<BatchWorker>((resolve, reject) => {
    const events = {
      onReady: resolve,
      onLongStart: () => {},
      onSetUpFailed: (_: BatchWorker, { message }: { message: string }) => reject(new Error(message)),
      onDiskFull: reject,
      onInterrupted: reject,
      onDeath: (_: BatchWorker, death: WorkerDeath) => tell(death),
      onFault: reject,
    };
    const made = new BatchWorker(process, events, { lifetime: LONG_LIFE });
    const job_spec = { job_id: "j", total_batch_count: 1 } as never;
    const init = { api_id: "v1", project: "/elsewhere", path: "predictor.py", api_config: "{}", job_spec };
    made.setUp({ ...init, concurrency: 1, threads: 1 }, 1).catch(reject);
  });
  const entry = Buffer.alloc(8 + items.length);
  entry.writeUInt32LE(BATCH, 0);
  entry.writeUInt32LE(items.length, 4);
  entry.write(items, 8);
  const segment: LeaseEntries = { entryBytes: () => entry.length, entries: () => entry };
  worker.lease([{ index: BATCH, segment }]);
  return { worker, death };
}

describe("a worker in a pod", () => {
  it("that dies had its batch in hand, and the next one starts in the same pod", async () => {
    const { next, launched } = await launch();
    const first = next();
    expect(first.identity.worker_id).toBe("pod");
    const { death } = await working(first, '["die"]');
    const { inHand, isInterruption, exit } = await death;
    expect([inHand, isInterruption]).toEqual([BATCH, false]);
    expect(exit).toMatchObject({ signal: "SIGSEGV", lastLines: [expect.stringMatching(/about to die$/)] });
    const second = next();
    expect(second.identity.worker_id).toBe("pod.2");
    const again = await working(second, "[1]");
    again.worker.killForTimeout();
    expect(await again.death).toMatchObject({ inHand: BATCH, timedOut: true, isInterruption: false });
    expect((await launched.facts()).starts).toBeGreaterThanOrEqual(2);
  });

  it("that loses its pod charges nobody", async () => {
    const { next, pod } = await launch();
    const { death } = await working(next(), "[1]");
    pod.changed({ ...POD, metadata: { ...POD.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
    const { inHand, isInterruption, outstanding, exit } = await death;
    expect([inHand, isInterruption, outstanding]).toEqual([undefined, true, [BATCH]]);
    expect(exit.interruption).toBe("lost its pod: somebody has deleted it");
  });

  it("is stopped after its grace", async () => {
    const { next, launched } = await launch();
    const process = next();
    const { worker } = await working(process, "[1]");
    const { starts } = await launched.facts();
    await worker.stop(100);
    expect(await process.exited).toMatchObject({ signal: "SIGKILL" });
    expect((await launched.facts()).starts).toBeGreaterThanOrEqual(starts);
  });
});
