/** What the record of a job, and its log, say about other APIs. */
import { Hono } from "hono";
import { expect, it } from "vitest";
import type { Keys } from "../../../src/access/keys.ts";
import { openLog } from "../../../src/base/log.ts";
import type { Jobs } from "../../../src/batch/jobs.ts";
import type { JobRow } from "../../../src/batch/records/job-rows.ts";
import { WorkerLog } from "../../../src/batch/workers/worker-log.ts";
import { WorkerReservations } from "../../../src/batch/workers/worker-reservations.ts";
import { SecretNames } from "../../../src/contracts/secrets.ts";
import { ShownConfig } from "../../../src/control/answers/shown-config.ts";
import { statusText } from "../../../src/control/jobs/job-answers.ts";
import { ComputeAccount } from "../../../src/engine/compute-account.ts";
import { replicasOf, workersOf } from "../../../src/engine/scheduler/claims.ts";
import { MANY_FILES } from "../../harness/open-files.ts";

const GIB = 2 ** 30;
const ROW = {
  job_id: "j",
  api_name: "mine",
  paused: null,
  end_time: null,
  reason_json: null,
} as unknown as JobRow;

/** A job that waits because `other` holds all compute. */
function waitingWorkers(other = replicasOf("other")): WorkerReservations {
  const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
  const compute = { cpuMillis: 1000, memoryBytes: 0, gpus: 0 };
  account.occupy(compute, other);
  const events = { reserved: () => {}, fault: () => {} };
  const workers = new WorkerReservations(
    { account, openFiles: MANY_FILES, compute, by: workersOf("j", "mine", 0) },
    events,
  );
  workers.keepAt(1);
  return workers;
}

/** `waiting` of the record, as a key with this scope reads it. */
async function shownTo(scope: "admin" | "submit", workers: WorkerReservations): Promise<string> {
  const jobs = {
    workerCounts: () => ({}),
    waiting: (_: string, withNames: boolean) => workers.describeWaiting(withNames),
  } as unknown as Jobs;
  const keys = {
    find: () => ({ id: "k", permissions: [{ scope, api: null }], rate: null }),
  } as unknown as Keys;
  const shown = new ShownConfig(keys, new SecretNames([]));
  const app = new Hono().get("/", (c) => c.text(statusText(c, { jobs, shown }, ROW)));
  const answer = await app.request("/", { headers: { authorization: "Bearer key" } });
  return ((await answer.json()) as { waiting: string }).waiting;
}

it("says who holds the compute that a job waits for to administrators only", async () => {
  const workers = waitingWorkers();
  const free = /^1 worker waits for compute: each takes 1 CPU; 0 CPU .* are free/;
  expect(await shownTo("admin", workers)).toMatch(free);
  expect(await shownTo("admin", workers)).toContain("; reserved by API other (1 CPU);");
  expect(await shownTo("submit", workers)).toMatch(free);
  expect(await shownTo("submit", workers)).not.toContain("other");
});

it("says how many jobs of a higher priority come first, and of which API to administrators only", async () => {
  const workers = waitingWorkers(workersOf("urgent", "other", 1));
  expect(await shownTo("admin", workers)).toMatch(/; 1 job of higher priority comes first \(of API other\)$/);
  expect(await shownTo("submit", workers)).toMatch(/; 1 job of higher priority comes first$/);
  expect(await shownTo("submit", workers)).not.toContain("other");
});

it("says in the log of the job for how much compute it waits, without names of others", () => {
  const lines: string[] = [];
  const log = new WorkerLog({
    ...{ jobId: "j", log: openLog("test", "/dev/null") },
    jobLog: (line) => lines.push(line),
    spans: { started() {}, ready() {}, because() {}, ended() {} },
  });
  log.waiting(waitingWorkers(), performance.now() + 60_000);
  expect(lines).toEqual([expect.stringMatching(/^1 of 1 workers wait for compute: each takes 1 CPU; 0 CPU/)]);
  expect(lines[0]).not.toContain("other");
});
