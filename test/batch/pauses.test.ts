/** Pausing and continuing many jobs at once. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import type { JobDeps } from "../../src/batch/job-deps.ts";
import { Pauses } from "../../src/batch/pauses.ts";
import { insertJob } from "../../src/batch/records/job-rows.ts";
import { RunsInProgress } from "../../src/batch/runs-in-progress.ts";
import { JOBS_BEGUN_AT_ONCE_MAX, JOBS_UNFINISHED_MAX } from "../../src/contracts/limits/jobs.ts";
import type { Database } from "../../src/database/database.ts";
import { temporaryDatabase } from "../harness/temporary-database.ts";

const JOB = { api_id: "1", submission_json: "{}", config_json: "{}", workers: 1, timeout_s: null };
const REST = { dead_letter_arn: null, dead_letter_queue: null, max_receive_count: 1, has_older_names: 0 };

describe("many paused jobs", () => {
  let db: Database;
  let deps: JobDeps;
  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    const setApiPaused = async () => {};
    deps = { db, epoch: 1, jobLog: () => {}, onLetters: () => {}, setApiPaused } as unknown as JobDeps;
    return temporary.remove;
  });
  async function insertPaused(count: number, api_name: string): Promise<void> {
    const times = { created_time: "2026-01-01T00:00:00Z", paused_time: "2026-01-01T00:00:01Z" };
    const rest = { isolates: 0, priority: 0 };
    await db.transaction(async (tx) => {
      for (let each = 0; each < count; each++) {
        const job = { job_id: `${api_name}-${each}`, api_name, ...JOB, ...REST, ...rest, ...times };
        await insertJob(tx, job as unknown as Parameters<typeof insertJob>[1]);
      }
    });
  }

  it("count towards the limit of unfinished jobs", async () => {
    const runs = new RunsInProgress(deps);
    await insertPaused(Math.ceil((2 * JOBS_UNFINISHED_MAX) / 3), "jobs");
    await expect(runs.assertMayBegin("jobs")).rejects.toMatchObject({ code: "queue_full" });
    await runs.assertMayBegin("other");
    await db.run("UPDATE jobs SET end_time = 'now' WHERE job_id = 'jobs-0'");
    await runs.assertMayBegin("jobs");
  });

  it("go on a few in each turn of the event loop, all of them", async () => {
    const count = 5 * JOBS_BEGUN_AT_ONCE_MAX + 1;
    await insertPaused(count, "jobs");
    const begun: string[] = [];
    const runs = { begin: async (id: string) => void begun.push(id) } as unknown as RunsInProgress;
    expect(await new Pauses(deps, runs).unpauseApi("jobs")).toBe(count);
    for (let before = 0; begun.length < count; before = begun.length) {
      await nextTurn();
      expect(begun.length - before).toBeLessThanOrEqual(JOBS_BEGUN_AT_ONCE_MAX);
    }
    expect(new Set(begun).size).toBe(count);
  });
});
