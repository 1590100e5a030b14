/** A worker of a job that sends anything: each of its batches is settled, released or lost exactly once. */
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeaseEntries } from "../../../src/batch/deliveries/lease-runs.ts";
import { BatchWorker } from "../../../src/batch/workers/batch-worker.ts";
import type { BatchWorkerEvents } from "../../../src/batch/workers/batch-worker-events.ts";
import type { RunningWorker, WorkerExit } from "../../../src/engine/engine.ts";
import type { Init } from "../../../src/protocol/messages.ts";
import { MESSAGE } from "../../../src/protocol/messages.ts";
import { LONG_LIFE } from "../../harness/lifetime.ts";
import { mustEqual, type Target } from "../target.ts";
import { FRAME_WORDS, fixtureFrames, frame, listenAsWorker } from "../wire.ts";

const BATCHES = [0, 1, 2, 3, 4, 5];
const dir = mkdtempSync(join(tmpdir(), "quern-fuzz-"));
const path = join(dir, "worker.sock");
const segment: LeaseEntries = {
  entries: (_index: number, count: number) => Buffer.alloc(count * 10, 1),
  entryBytes: () => 10,
};
const init: Init = {
  ...{ api_id: "a", project: "/", path: "p.py", api_config: "{}", concurrency: 1, threads: 1 },
};

let server: Server;
let words: Buffer = Buffer.alloc(0);

async function setUp(): Promise<() => Promise<void>> {
  server = await listenAsWorker(path, (socket, type) => {
    if (type === MESSAGE.INIT)
      socket.write(frame(MESSAGE.READY, 0, '{"wants":[],"is_async":false,"has_on_job_complete":false}'));
    if (type === MESSAGE.LEASE) socket.end(words);
  });
  return async () => {
    server.close();
    rmSync(dir, { recursive: true });
  };
}

/** A process that ends when it is killed. */
function fakeProcess(): RunningWorker {
  let end: (exit: WorkerExit) => void = () => {};
  const exited = new Promise<WorkerExit>((resolve) => {
    end = resolve;
  });
  const identity = {
    worker_id: "w",
    pid: 1,
    process_start: "0",
    socket: path,
    token: "t",
    note: join(dir, "n"),
    instance_id: "",
  };
  const kill = () => end({ signal: "SIGKILL" });
  const stop = async () => kill();
  return { identity, address: { path }, exited, kill, stop, logTo: () => {}, lastNote: () => undefined };
}

async function run(input: Buffer): Promise<undefined> {
  words = input;
  /** The outcome of each batch. */
  const settled: number[] = [];
  await new Promise<void>((resolve) => {
    const events: BatchWorkerEvents = {
      onReady: () => {
        // A second READY changes nothing.
        if (worker.deliveries.outstanding.next === 1)
          worker.lease(BATCHES.map((index) => ({ index, segment })));
      },
      onLongStart: () => {},
      onInterrupted: () => {},
      onSetUpFailed: () => {
        settled.push(...worker.deliveries.outstanding.takeAll());
        void worker.stop(0).then(resolve);
      },
      onDiskFull: () => resolve(),
      onFault: (error) => {
        throw error;
      },
      onDeath: (_, { outstanding }) => {
        settled.push(...outstanding);
        resolve();
      },
    };
    const worker = new BatchWorker(fakeProcess(), events, { lifetime: LONG_LIFE });
    worker.leaser = {
      acked: (_, { upTo }) => {
        const { outstanding } = worker.deliveries;
        for (let one = outstanding.shiftUpTo(upTo); one !== undefined; one = outstanding.shiftUpTo(upTo))
          settled.push(one.batchIndex);
      },
      pump: () => {},
      released: (batches) => settled.push(...batches),
    };
    void worker.setUp(init, 1);
  });
  mustEqual(
    settled.sort(),
    BATCHES,
    "the batches that were settled, given back or lost, and those that were leased",
  );
  return undefined;
}

const ack = (upTo: number, succeeded: number) => {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(succeeded);
  return frame(MESSAGE.ACK, upTo, body);
};

export const settlements: Target = {
  dictionary: FRAME_WORDS,
  maxBytes: 64 * 1024,
  covers: /\/src\/(batch|protocol)\//,
  seeds: () => [
    ...fixtureFrames((type) => type > MESSAGE.WELCOME),
    Buffer.concat([
      ack(2, 2),
      frame(MESSAGE.START, 3),
      ack(3, 1),
      frame(MESSAGE.RELEASE, 5, "\x06\0\0\0"),
      ack(4, 1),
    ]),
    ack(6, 6),
  ],
  setUp,
  run,
};
