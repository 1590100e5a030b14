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

const GIB = 2 ** 30;
const ROW = {
  job_id: "j",
  api_name: "mine",
  paused: null,
  end_time: null,
  reason_json: null,
} as unknown as JobRow;

/** A job that waits because `other` holds all compute. */
function waitingWorkers(): WorkerReservations {
  const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
  const compute = { cpuMillis: 1000, memoryBytes: 0, gpus: 0 };
  account.occupy(compute, replicasOf("other"));
  const events = { reserved: () => {}, fault: () => {} };
  const workers = new WorkerReservations({ account, compute, by: workersOf("j", "mine", 0) }, events);
  workers.keepAt(1);
  return workers;
}

it("says who holds the compute that a job waits for to administrators only", async () => {
  const workers = waitingWorkers();
  const jobs = {
    workerCounts: () => ({}),
    waiting: (_: string, withNames: boolean) => workers.describeWaiting(withNames),
  } as unknown as Jobs;
  const shownTo = async (scope: "admin" | "submit") => {
    const keys = {
      find: () => ({ id: "k", permissions: [{ scope, api: null }], rate: null }),
    } as unknown as Keys;
    const shown = new ShownConfig(keys, new SecretNames([]));
    const app = new Hono().get("/", (c) => c.text(statusText(c, { jobs, shown }, ROW)));
    const answer = await app.request("/", { headers: { authorization: "Bearer key" } });
    return ((await answer.json()) as { waiting: string }).waiting;
  };
  const free = /^1 worker waits for compute: each takes 1 CPU; 0 CPU .* are free/;
  expect(await shownTo("admin")).toMatch(free);
  expect(await shownTo("admin")).toContain("; reserved by API other (1 CPU);");
  expect(await shownTo("submit")).toMatch(free);
  expect(await shownTo("submit")).not.toContain("other");
});

it("says in the log of the job for how much compute it waits, without names of others", () => {
  const lines: string[] = [];
  const log = new WorkerLog({
    ...{ jobId: "j", log: openLog("test", "/dev/null") },
    jobLog: (line) => lines.push(line),
  });
  log.waiting(waitingWorkers(), performance.now() + 60_000);
  expect(lines).toEqual([expect.stringMatching(/^1 of 1 workers wait for compute: each takes 1 CPU; 0 CPU/)]);
  expect(lines[0]).not.toContain("other");
});
