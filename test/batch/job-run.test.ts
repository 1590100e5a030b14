/** The run of a job that is stopped while it prepares, or loses its database. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { EnqueuePlaces, SuspectPlace } from "../../src/batch/enqueue/enqueue-places.ts";
import type { JobDeps } from "../../src/batch/job-deps.ts";
import { JobRun } from "../../src/batch/job-run.ts";
import type { JobRow } from "../../src/batch/records/job-rows.ts";
import { RunTicker } from "../../src/batch/run-ticker.ts";
import { DatabaseUnavailable } from "../../src/database/database.ts";

const COUNTS = { succeeded: 0, failed_batches: 0 };
const JOB = {
  job_id: "job",
  api_name: "api",
  status: "status_running",
  round: 1,
  timeout_s: null,
  ...COUNTS,
};

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

function newRun(deps: object): JobRun {
  const places = { items: new EnqueuePlaces(), files: new EnqueuePlaces(), suspects: new SuspectPlace() };
  const all = { dataDir: directory, epoch: 1, jobLog: () => {}, isOnDisk: {}, ...deps } as unknown as JobDeps;
  return new JobRun(all, JOB as JobRow, 0, { places, ticker: new RunTicker() });
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
  return { run: newRun({ db, findApi }), opened };
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

it("leaves its job to the next controller if the server shuts down while the database is away", async () => {
  const asked: string[] = [];
  const logged: string[] = [];
  const give = async (sql: unknown) => {
    asked.push(String(sql));
    throw new DatabaseUnavailable("nothing listens", false);
  };
  const log = { error: (_: unknown, text: string) => logged.push(text) };
  const left = newRun({ db: { run: give, all: give, transaction: give }, log });
  await left.start();
  await left.ended;
  // It did not try to end the job, which could succeed if the database is back at this moment.
  expect([asked, logged]).toEqual([[expect.stringContaining("start_time")], []]);
});
