/** A replica that repeats what it says to the controller (docs/worker-protocol.md). */
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Replica, type ReplicaEvents } from "../../../src/apis/replicas/replica.ts";
import { delay } from "../../../src/base/clock.ts";
import { processStartTime } from "../../../src/base/process-identity.ts";
import { encodeByteCount, encodeJson, MESSAGE } from "../../../src/protocol/messages.ts";
import { eventually } from "../../harness/eventually.ts";
import { fakeProcess, fakeWorker, type SentFrame } from "../../harness/fake-worker.ts";
import { LONG_LIFE } from "../../harness/lifetime.ts";

const READY: SentFrame = [MESSAGE.READY, 0, 0, encodeJson({ wants: [], is_async: false })];
const FAULT = { stage: "init", type: "E", message: "no", traceback: "" };
const INIT_FAILED: SentFrame = [MESSAGE.INIT_FAILED, 0, 0, encodeJson(FAULT)];
const recycle = (left: number): SentFrame => [MESSAGE.RECYCLE, 0, 0, encodeByteCount(left)];

const reservation = { cpuMillis: 0, memoryBytes: 0, gpus: [] };
const API = { api_name: "a", predictor_id: "p", reservation, lifetime: LONG_LIFE, isAdopted: false };
const spec = { api_id: "v1", project: "/", path: "predictor.py", api_config: "{}" };
const SPEC = { ...spec, concurrency: 1, threads: 1 };

let dir: string;
let server: Server;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "quern-replica-"));
});
afterEach(() => {
  server.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Writes down what happens to a replica. */
function recorded(events: string[]): ReplicaEvents {
  return {
    onReady: () => events.push("ready"),
    onFailed: () => events.push("failed"),
    onLongStart: () => {},
    onWear: ({ wear }) => events.push(wear),
    onGone: () => events.push("gone"),
    onFault: (error) => events.push(error.message),
  };
}

/** A replica whose worker sends these frames when it gets INIT, and what happens to it. */
async function replicaOf(frames: SentFrame[]) {
  const events: string[] = [];
  const path = join(dir, "w.sock");
  server = await fakeWorker(path, "new", (type) => (type === MESSAGE.INIT ? frames : []));
  const replica = new Replica(fakeProcess(path, processStartTime(process.pid)), API, recorded(events));
  await replica.connect(SPEC, 1);
  return { replica, events };
}

it("that repeats RECYCLE changes something twice at most", async () => {
  const many = Array.from({ length: 1_000 }, () => [recycle(1), recycle(1)]).flat();
  const { replica, events } = await replicaOf([READY, ...many, recycle(0), ...many, recycle(0)]);
  await eventually("it is worn", () => replica.wear === "worn");
  replica.kill();
  await eventually("it is gone", () => events.includes("gone"), 5_000);
  expect(events).toEqual(["ready", "wearing", "worn", "gone"]);
});

it.each([
  ["READY", "ready", [READY, READY]],
  ["INIT_FAILED", "failed", [INIT_FAILED, INIT_FAILED]],
  ["INIT_FAILED after READY", "ready", [READY, INIT_FAILED]],
])("that sends a second %s is killed, and nothing follows from it", async (_, first, frames) => {
  const { events } = await replicaOf(frames);
  await eventually("it is gone", () => events.includes("gone"), 5_000);
  expect(events).toEqual([first, "gone"]);
});

it("that a former controller started long ago is ready, although its time to start is over", async () => {
  const path = join(dir, "w.sock");
  server = await fakeWorker(path, "ready", () => []);
  // The first process of the machine.
  const worker = fakeProcess(path, "0");
  const events: string[] = [];
  const replica = new Replica(worker, { ...API, isAdopted: true }, recorded(events));
  // A timer for the end of its start would be over before this one.
  await delay(5);
  await replica.connect(SPEC, 1);
  expect(events).toEqual(["ready"]);
  replica.kill();
});

it.each([
  ["later", [20, 60_000], true],
  ["sooner", [60_000, 20], true],
  ["never", [60_000, 60_000], false],
])("that drains already and is asked to end %s is killed at the first end", async (_, graces, isKilled) => {
  const { replica, events } = await replicaOf([READY]);
  for (const graceMs of graces) replica.drain(graceMs);
  await delay(100);
  expect(events.includes("gone")).toBe(isKilled);
  replica.kill();
});
