/** `quern delete API --records`: what is known of the jobs of an API goes with it. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deleteApi } from "../../../src/apis/records/api-rows.ts";
import { timestamp } from "../../../src/base/clock.ts";
import { askToForget } from "../../../src/batch/end/forget-job.ts";
import { countRows } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const TABLES = [
  "jobs",
  "job_configs",
  "job_submissions",
  "segments",
  "batches",
  "forget_requests",
  "job_totals",
  "job_durations",
];

describe("the records of a deleted API's jobs", () => {
  let server: TestServer;
  beforeEach(async () => {
    server = new TestServer();
    await server.start();
  });
  afterEach(() => server.stop());

  const runJobs = async (count: number) => {
    server.deploy(project(ECHO));
    const job = { item_list: { items: [1, 2], batch_size: 1 }, workers: 1, config: { a: 1 } };
    const ids = await Promise.all(Array.from({ length: count }, () => server.submit("jobs", job)));
    for (const id of ids) await server.ended("jobs", id);
    return ids;
  };
  const rows = async () => {
    const db = server.openDatabase();
    const counts = await countRows(db, TABLES);
    await db.close();
    return counts;
  };
  const entries = (...path: string[]) => {
    const directory = join(server.dataDir, ...path);
    return existsSync(directory) ? readdirSync(directory) : [];
  };
  const allAreGone = () =>
    eventually("all is removed", async () => Object.keys(await rows()).length === 0, 60_000);

  it("are removed with it, with their data and logs, and a later API of that name has none", async () => {
    await runJobs(3);
    const { code, out } = server.cli(["delete", "jobs", "--records", "-y"]);
    expect([code, out]).toEqual([0, expect.stringContaining("the records of its 3 jobs")]);
    await allAreGone();
    expect([entries("jobs"), entries("logs", "jobs")]).toEqual([[], []]);
    expect(await runJobs(1)).toHaveLength(1);
    expect((await rows()).jobs).toBe(1);
  });

  it("are removed later, if it was deleted without them", async () => {
    await runJobs(2);
    expect(server.cli(["delete", "jobs", "-y"]).code).toBe(0);
    expect((await rows()).jobs).toBe(2);
    expect(server.cli(["delete", "jobs", "--records", "-y"]).code).toBe(0);
    await allAreGone();
    expect(server.cli(["delete", "jobs", "--records", "-y"])).toMatchObject({ code: 4 });
    expect(server.cli(["delete", "jobs", "some-job", "--records", "-y"])).toMatchObject({ code: 2 });
  });

  it("go once a running job has stopped", async () => {
    server.deploy(project(ECHO.replace("return payload", "import time; time.sleep(5)")));
    await server.submit("jobs", { item_list: { items: [1], batch_size: 1 }, workers: 1 });
    expect(server.cli(["delete", "jobs", "--records", "-y"]).code).toBe(0);
    await allAreGone();
  });

  it("are removed by the next controller, if this one is killed right after the deletion", async () => {
    await runJobs(3);
    await server.stopProcesses();
    const db = server.openDatabase();
    await deleteApi(db, "jobs", async (tx) => {
      await askToForget(tx, "jobs", timestamp());
    });
    await db.close();
    expect((await rows()).jobs).toBe(3);
    await server.start();
    await allAreGone();
  });
});

describe("--keep-records", () => {
  it("is at least as long as the data is kept", () => {
    const server = new TestServer();
    const { code, err } = server.cli(["up", "--keep-records", "30"]);
    expect([code, err]).toEqual([2, expect.stringContaining("--keep-failed-jobs (60 days)")]);
  });
});
