/** How often in a row a controller died while it enqueued a job: what counts, and what does not. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EnqueuingDeaths, isSuspect } from "../../../src/batch/enqueue/enqueuing-deaths.ts";
import { insertJob } from "../../../src/batch/records/job-rows.ts";
import { claimJob, saveEnqueued, setStartTime } from "../../../src/batch/records/owned-job.ts";
import {
  ENQUEUING_DEATHS_BESIDE_OTHERS,
  ENQUEUING_DEATHS_MAX,
  ENQUEUING_SURVIVED_MS,
} from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

const TIME = "2026-01-01T00:00:00.000000000Z";

describe("the deaths of controllers while a job is enqueued", () => {
  let directory: string;
  let db: Database;
  let epoch = 0;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-deaths-"));
    db = await openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
    epoch = 0;
    const job = {
      ...{ job_id: "job", api_name: "a", api_id: "1", workers: 1, timeout_s: null, max_receive_count: 1 },
      ...{ dead_letter_arn: null, dead_letter_queue: null, created_time: TIME, has_older_names: 0 },
      ...{ submission_json: "{}", config_json: "{}" },
    };
    await db.transaction((tx) => insertJob(tx, job));
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  /** The next controller takes the job over. */
  async function nextController() {
    const job = (await claimJob(db, "job", ++epoch))!;
    await setStartTime(db, "job", epoch, TIME);
    return { job, deaths: new EnqueuingDeaths(db, epoch, job) };
  }

  /** Controllers that begin a turn and die in it. */
  async function die(times: number): Promise<void> {
    for (let i = 0; i < times; i++) await (await nextController()).deaths.turnBegins();
  }

  it("make the job a suspect, and then end it", async () => {
    await die(ENQUEUING_DEATHS_BESIDE_OTHERS);
    // No write was spent on the first one.
    expect(isSuspect((await nextController()).job)).toBe(false);
    await die(1);
    expect(isSuspect((await nextController()).job)).toBe(true);
    await die(ENQUEUING_DEATHS_MAX - ENQUEUING_DEATHS_BESIDE_OTHERS);
    await expect(die(1)).rejects.toThrow("the controller died at least 6 times in a row");
  });

  it("do not count if the turn ended or the server stopped", async () => {
    await die(3);
    const { deaths } = await nextController();
    await deaths.turnBegins();
    await deaths.turnIsOver();
    await deaths.turnIsOver();
    expect((await nextController()).job.enqueuing_deaths).toBe(2);
  });

  it("begin anew once the job got further, also within a turn", async () => {
    await die(5);
    const { deaths } = await nextController();
    await deaths.turnBegins();
    await db.transaction((tx) => saveEnqueued(tx, "job", epoch, 1, null));
    await deaths.turnIsOver();
    expect((await nextController()).job.enqueuing_deaths).toBe(0);
  });

  it("are survived when a turn has lasted for a minute", async () => {
    await die(1);
    const { deaths } = await nextController();
    const beginsMs = performance.now();
    expect(deaths.isSurvived(beginsMs + 2 * ENQUEUING_SURVIVED_MS)).toBe(false);
    await deaths.turnBegins();
    expect(deaths.isSurvived(beginsMs + ENQUEUING_SURVIVED_MS - 1)).toBe(false);
    expect(deaths.isSurvived(performance.now() + ENQUEUING_SURVIVED_MS)).toBe(true);
    await deaths.turnIsOver();
    expect(deaths.isSurvived(performance.now() + ENQUEUING_SURVIVED_MS)).toBe(false);
  });
});
