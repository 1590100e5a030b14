/** The run of a job that is stopped while it prepares. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { EnqueuePlaces } from "../../src/batch/enqueue/enqueue-places.ts";
import type { JobDeps } from "../../src/batch/job-deps.ts";
import { JobRun } from "../../src/batch/job-run.ts";
import type { JobRow } from "../../src/batch/records/job-rows.ts";
import { RunTicker } from "../../src/batch/run-ticker.ts";

const JOB = { job_id: "job", api_name: "api", status: "status_running", round: 1, timeout_s: null };

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-job-run-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Files of the job that this process has open. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(join("/proc/self/fd", fd));
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return [];
    }
  });
}

/** A job with output. It looks for its output until `found` resolves, and for its API once the output is open. */
function run(found: Promise<void>) {
  let onOpened = () => {};
  const opened = new Promise<void>((resolve) => {
    onOpened = resolve;
  });
  const db = {
    run: async () => 1,
    all: async (sql: string) => {
      if (sql.includes("job_submissions")) return [{ submission_json: '{"kind":"items","batch_size":1}' }];
      await found;
      return [{ prefix: "quern://outputs/job/", compression: "none" }];
    },
  };
  const findApi = async () => {
    onOpened();
    return {};
  };
  const deps = { ...{ db, findApi, dataDir: directory, epoch: 1 }, jobLog: () => {} } as unknown as JobDeps;
  const places = { items: new EnqueuePlaces(), files: new EnqueuePlaces() };
  const shared = { places, ticker: new RunTicker() };
  return { run: new JobRun(deps, JOB as JobRow, 0, shared), opened };
}

it("closes an output that it opens after it was stopped", async () => {
  let find = () => {};
  const found = new Promise<void>((resolve) => {
    find = resolve;
  });
  const { run: stopped, opened } = run(found);
  await stopped.start();
  await stopped.stop();
  await stopped.ended;
  find();
  await opened;
  expect(readdirSync(directory, { recursive: true })).toContainEqual(expect.stringContaining("index.1"));
  expect(openFiles()).toEqual([]);
});
