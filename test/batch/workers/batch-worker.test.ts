/** A worker of a job that breaks the protocol. */
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { BatchWorker } from "../../../src/batch/workers/batch-worker.ts";
import type { WorkerDeath } from "../../../src/batch/workers/worker-death.ts";
import { FRAME_BODY_BYTES_MAX } from "../../../src/contracts/limits/frames.ts";
import { FLAG_MORE } from "../../../src/protocol/frames.ts";
import { encodeJson, MESSAGE, type WorkerFault } from "../../../src/protocol/messages.ts";
import { fakeProcess, fakeWorker, type SentFrame } from "../../harness/fake-worker.ts";
import { LONG_LIFE } from "../../harness/lifetime.ts";

let dir: string;
let server: Server;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "quern-batch-worker-"));
});
afterEach(() => {
  server.close();
  rmSync(dir, { recursive: true, force: true });
});

it("a job's worker is killed when it begins a long result, which no controller expects", async () => {
  const path = join(dir, "w.sock");
  const piece = Buffer.alloc(FRAME_BODY_BYTES_MAX);
  server = await fakeWorker(path, "new", (type) =>
    type === MESSAGE.INIT ? [[MESSAGE.RESULT, FLAG_MORE, 1, piece]] : [],
  );
  const message = await new Promise<string>((resolve, reject) => {
    const events = {
      onReady: () => {},
      onLongStart: () => {},
      onSetUpFailed: (_: BatchWorker, fault: WorkerFault) => resolve(fault.message),
      onDiskFull: () => {},
      onInterrupted: () => {},
      onDeath: () => {},
      onFault: reject,
    };
    const worker = new BatchWorker(fakeProcess(path), events, { lifetime: LONG_LIFE });
    const spec = { api_id: "v1", project: dir, path: "predictor.py", api_config: "{}" };
    worker.setUp({ ...spec, concurrency: 1, threads: 1 }, 1).catch(reject);
  });
  expect(message).toContain("for which nobody waits");
});

it("a job's worker that says twice that it is ready is killed", async () => {
  const path = join(dir, "w.sock");
  const ready: SentFrame = [MESSAGE.READY, 0, 0, encodeJson({ wants: [], has_on_job_complete: false })];
  server = await fakeWorker(path, "new", (type) => (type === MESSAGE.INIT ? [ready, ready] : []));
  let readyCount = 0;
  const broken = await new Promise<string | undefined>((resolve, reject) => {
    const events = {
      onReady: () => ++readyCount === 2 && resolve(undefined),
      onLongStart: () => {},
      onSetUpFailed: reject,
      onDiskFull: reject,
      onInterrupted: reject,
      onDeath: (_: BatchWorker, death: WorkerDeath) => resolve(death.broken),
      onFault: reject,
    };
    const worker = new BatchWorker(fakeProcess(path), events, { lifetime: LONG_LIFE });
    const spec = { api_id: "v1", project: dir, path: "predictor.py", api_config: "{}" };
    worker.setUp({ ...spec, concurrency: 1, threads: 1 }, 1).catch(reject);
  });
  expect(broken).toContain("twice");
});
