/** A data directory that is a copy of another one, and a database that does not belong to its directory. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QUICK_CHECK_WAIT_BYTES } from "../../../src/contracts/limits/database.ts";
import { openSqlite } from "../../../src/database/sqlite-drivers.ts";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const BATCHES = 30;
/** Of SQLite. */
const PAGE_BYTES = 4096;

describe.runIf(isOnSqlite)("a copy of a data directory", () => {
  const original = new TestServer();
  const copy = new TestServer();
  const log = join(original.dir, "log");
  const go = join(original.dir, "go");
  let jobId = "";
  let stopped = "";
  beforeAll(async () => {
    await original.start();
    original.deploy(project(OBEDIENT));
    writeFileSync(log, "");
    const items = Array.from({ length: BATCHES }, (_, id) => ({ id, do: "await", path: go }));
    const job = { workers: 1, config: { log }, item_list: { items, batch_size: 1 } };
    jobId = await original.submit("jobs", job);
    stopped = await original.submit("jobs", job);
    await eventually("both have a worker", () => original.workers().length === 3);
    execFileSync("cp", ["-a", original.dataDir, copy.dataDir]);
  }, 60_000);
  afterAll(async () => {
    writeFileSync(go, "");
    await copy.stop();
    await original.stop();
  }, 120_000);
  const waiting = async (server: TestServer, id: string) =>
    ((await (await server.fetch(`/jobs/${id}`)).json()) as { job_status: { waiting?: string } }).job_status
      .waiting;

  it("leaves the original's workers alone, serves its own, and its jobs are paused", async () => {
    const before = original.workers();
    const pidOf = async (server: TestServer) => (await server.post("/echo", { do: "pid" })).json();
    const pid = await pidOf(original);
    await copy.start();
    await eventually("the copy serves", async () => (await copy.post("/echo", { id: 1 })).status === 200);
    expect(original.workers()).toEqual(before);
    expect(await pidOf(original)).toBe(pid);
    expect(await pidOf(copy)).not.toBe(pid);
    expect(copy.workers()).toHaveLength(1);
    expect(await waiting(copy, jobId)).toMatch(/paused.*quern job unpause --all/);
    expect(copy.cli(["job", "get", "jobs", jobId]).out).toContain("waiting: paused");
    expect(await waiting(original, jobId)).toBeUndefined();
  }, 60_000);

  it("keeps its jobs paused across restarts, stops one on request, and continues the others on request", async () => {
    expect(copy.cli(["job", "stop", "jobs", stopped]).code).toBe(0);
    expect(await copy.job("jobs", stopped)).toMatchObject({ status: "status_stopped" });
    process.kill(copy.child("controller"), "SIGKILL");
    await eventually("it is back", async () => (await copy.fetch("/jobs")).status === 200);
    expect(await waiting(copy, jobId)).toContain("paused");
    expect(copy.workers()).toHaveLength(1);
    writeFileSync(go, "");
    expect(copy.cli(["job", "unpause", "--all"])).toMatchObject({ code: 0, out: "continued 1 job\n" });
    const whole = { status: "status_succeeded", batch_metrics: { succeeded: BATCHES, failed: 0 } };
    expect(await copy.ended("jobs", jobId)).toMatchObject(whole);
    expect(await waiting(copy, jobId)).toBeUndefined();
    for (const id of [jobId, stopped]) expect(await original.ended("jobs", id)).toMatchObject(whole);
  }, 90_000);

  it("continues its jobs at once if started with that option, and after a move within a file system", async () => {
    rmSync(go);
    const items = [{ id: 1, do: "await", path: go }];
    const id = await original.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    await eventually("it runs", async () => (await original.job("jobs", id)).status === "status_running");
    await original.stopProcesses();
    await copy.stopProcesses();
    rmSync(copy.dataDir, { recursive: true });
    renameSync(original.dataDir, `${original.dataDir}.moved`);
    renameSync(`${original.dataDir}.moved`, original.dataDir);
    await original.start();
    expect((await waiting(original, id)) ?? "").not.toContain("paused");
    await original.stopProcesses();
    execFileSync("cp", ["-a", original.dataDir, copy.dataDir]);
    await copy.start({}, ["--continue-jobs"]);
    writeFileSync(go, "");
    expect(await copy.ended("jobs", id)).toMatchObject({ status: "status_succeeded" });
  }, 120_000);
});

/** Overwrites a half of each page of the database, from this byte on. */
function damagePages(file: string, from: number): void {
  const { size } = statSync(file);
  const fd = openSync(file, "r+");
  for (let at = from; at < size; at += PAGE_BYTES)
    writeSync(fd, Buffer.alloc(PAGE_BYTES / 2, 0x5a), 0, PAGE_BYTES / 2, at);
  closeSync(fd);
}

describe.runIf(isOnSqlite)("a damaged or missing database", () => {
  const server = new TestServer();
  const file = join(server.dataDir, "quern.db");
  const kept = join(server.dir, "kept.db");
  const jobs = () => readdirSync(join(server.dataDir, "jobs"));
  let jobId = "";
  beforeAll(async () => {
    await server.start();
    server.deploy(project(OBEDIENT), { wait: false });
    const items = Array.from({ length: 50 }, (_, id) => ({ id: `${id}${"x".repeat(1000)}` }));
    jobId = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    await server.ended("jobs", jobId);
    await server.stopProcesses();
    copyFileSync(file, kept);
  }, 60_000);
  afterAll(() => server.stop(), 60_000);

  it.each([
    ["is missing", () => rmSync(file)],
    ["is empty", () => truncateSync(file)],
    ["is not a database", () => writeFileSync(file, "x".repeat(8192))],
    [
      "has no tables",
      () => {
        rmSync(file);
        const driver = openSqlite(file);
        driver.exec("VACUUM");
        driver.exec("PRAGMA journal_mode = WAL");
        driver.close();
      },
    ],
    [
      "is damaged",
      () => {
        // As after a crash: the server checks a database that was open when it died.
        writeFileSync(join(server.dataDir, "quern.db.in-use"), "");
        damagePages(file, PAGE_BYTES);
      },
    ],
  ])(
    "that %s is refused if there is other data, and nothing is removed",
    (what, harm) => {
      for (const name of readdirSync(server.dataDir).filter((entry) => /^quern\.db-/.test(entry)))
        rmSync(join(server.dataDir, name));
      copyFileSync(kept, file);
      harm();
      const refused = server.cli(["up", "--listen", "127.0.0.1:0"]);
      expect([refused.code, refused.err]).toEqual([
        1,
        expect.stringContaining(`the database ${file} ${what}`),
      ]);
      expect(refused.err).toContain("backup");
      expect(jobs()).toEqual([jobId]);
      expect(server.cli(["keys", "create", "--scope", "predict"]).code).not.toBe(0);
      if (what !== "is damaged" && what !== "has no tables")
        expect(server.cli(["doctor"]).out).toMatch(
          new RegExp(`^database +fail +the database \\S+ ${what}`, "m"),
        );
    },
    60_000,
  );

  it("is accepted after it is restored, and its mark of use is removed by a clean stop", async () => {
    for (const name of readdirSync(server.dataDir).filter((entry) => /^quern\.db-/.test(entry)))
      rmSync(join(server.dataDir, name));
    copyFileSync(kept, file);
    const mark = join(server.dataDir, "quern.db.in-use");
    await server.start();
    expect(existsSync(mark)).toBe(true);
    expect(await server.job("jobs", jobId)).toMatchObject({ status: "status_succeeded" });
    await server.stopProcesses();
    expect(existsSync(mark)).toBe(false);
  }, 60_000);

  it("is checked while the server runs if it has over 1 GiB, and its damage is logged", async () => {
    // A table that no start reads, at the end of the file. The rest of the gigabyte is a hole, which takes no space.
    const driver = openSqlite(file);
    driver.exec("CREATE TABLE extra (text TEXT)");
    driver.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
       INSERT INTO extra SELECT hex(randomblob(1000)) FROM n`,
    );
    driver.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    driver.close();
    damagePages(file, statSync(file).size - 40 * PAGE_BYTES);
    truncateSync(file, QUICK_CHECK_WAIT_BYTES + PAGE_BYTES);
    writeFileSync(join(server.dataDir, "quern.db.in-use"), "");
    server.stderr = "";
    await server.start();
    await eventually("its damage is logged", () => server.stderr.includes("the database is damaged"));
    expect(await server.job("jobs", jobId)).toMatchObject({ status: "status_succeeded" });
    await server.stopProcesses();
  }, 60_000);
});
