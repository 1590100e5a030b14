/**
 * A full disk, a small one of its own: submissions are refused, running jobs wait and lose nothing; and how long data
 * is kept.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLog } from "../../../src/base/log.ts";
import { Retention } from "../../../src/batch/end/retention.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import { ITEMS_STORED_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";
import { runtimeDirectory } from "../../../src/settings/runtime-directory.ts";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { ECHO } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { mountSmallDisk, unmount } from "../../harness/small-disk.ts";

const DISK_MIB = 24;
/** Of items that need a file of their own. */
const PAD = "x".repeat(ITEMS_STORED_BYTES_MAX);
const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload):
        print("x" * 2000)
        time.sleep(self.config.get("slow", 0))
        with open(self.config["handled"], "a") as file: file.write("".join("%s\\n" % item["id"] for item in payload))
        if payload[0].get("bad"): raise ValueError("bad")
`;

/** Of a batch, in seconds. */
const FILLS_TIMEOUT_S = 5;
/** Its predictions, or its errors, take as much of the disk as its payload. */
const FILLS = `
class PythonPredictor:
    def __init__(self, config): self.fails = config.get("fails")
    def predict(self, payload):
        if self.fails: raise ValueError(payload[0]["p"])
        return payload[0]
`;

describe.runIf(isOnSqlite)("a small disk", () => {
  const server = new TestServer();
  const isMounted = isOnSqlite && mountSmallDisk(server.dataDir, 2 * DISK_MIB);
  const deploy = () => {
    const config = JSON.stringify({ handled: join(server.dir, "handled") });
    server.deploy({
      "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: ${config}}\n- name: echo\n  predictor: {path: echo.py}\n- name: fills\n  kind: BatchAPI\n  predictor: {path: fills.py, timeout: ${FILLS_TIMEOUT_S}s}\n`,
      "predictor.py": PREDICTOR,
      "fills.py": FILLS,
      "echo.py": ECHO,
    });
  };
  beforeAll(async () => {
    if (!isMounted) return;
    await server.start();
    deploy();
  });
  afterAll(async () => {
    await server.stopProcesses();
    if (isMounted) unmount(server.dataDir);
    await server.stop();
  });

  it.runIf(isMounted)("has space for everything else while copies of input wait for it", async () => {
    const path = server.writeInput("many.jsonl.gz", "");
    const lines = `{"id":1,"p":"${"z".repeat(900)}"}\n`.repeat(60_000);
    writeFileSync(path.slice("file://".length), gzipSync(lines));
    const input = { workers: 1, delimited_files: { store_paths: [path], batch_size: 200 } };
    const waiting = await Promise.all(Array.from({ length: 5 }, () => server.submit("jobs", input)));
    const log = (id: string) => server.cli(["logs", "jobs", id]).out;
    await eventually(
      "two wait",
      () => waiting.filter((id) => log(id).includes("waits for space")).length >= 2,
    );
    const other = { workers: 1, item_list: { items: [{ id: 2 }], batch_size: 1 } };
    const ended = await server.ended("jobs", await server.submit("jobs", other));
    expect(ended.status).toBe("status_succeeded");
    expect(await server.post("/echo", 1)).toMatchObject({ status: 200 });
    for (const id of waiting) {
      expect(await server.fetch(`/jobs/${id}`, { method: "DELETE" })).toMatchObject({ status: 200 });
      expect(await server.ended("jobs", id)).toMatchObject({ status: "status_stopped" });
    }
  });

  it.runIf(isMounted).each([
    ["predictions", { output: {} }],
    ["failed batches", { config: { fails: true } }],
  ])("has space for everything else while %s of a job wait for it", async (what, more) => {
    const line = `{"p":"${"y".repeat(30_000)}"}\n`;
    const path = server.writeInput("fills.jsonl", line.repeat(2_500));
    const id = await server.submit("fills", {
      workers: 2,
      delimited_files: { store_paths: [path], batch_size: 1 },
      ...more,
    });
    const log = () => server.cli(["logs", "fills", id]).out;
    await eventually("it waits", () => log().includes(`${what} of jobs leave`), 60_000, log);
    await new Promise((resolve) => setTimeout(resolve, 2_000 * FILLS_TIMEOUT_S));
    expect(log(), "workers that wait for the disk are not killed").not.toMatch(/timeout|was killed/);
    expect(server.cli(["pause", "jobs"])).toMatchObject({ code: 0 });
    expect(await server.fetch(`/fills/${id}`, { method: "DELETE" })).toMatchObject({ status: 200 });
    expect(await server.ended("fills", id)).toMatchObject({ status: "status_stopped" });
    expect(server.cli(["unpause", "jobs"])).toMatchObject({ code: 0 });
    expect(server.cli(["delete", "fills", "--records", "-y"]).code).toBe(0);
    // Its files go once its workers have ended.
    const other = { workers: 1, item_list: { items: [{ id: 2 }], batch_size: 1 } };
    await eventually("there is space again", async () => (await server.post("/jobs", other)).status === 200);
    deploy();
  });

  it.runIf(isMounted)("keeps some space from submissions, for everything else", async () => {
    const items = [{ id: 3, p: "s".repeat(200_000) }];
    const submit = () => server.post("/jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    let last = await submit();
    for (let n = 0; n < 500 && last.status === 200; n++) last = await submit();
    expect([last.status, await last.json()]).toMatchObject([
      507,
      { code: "disk_full", message: expect.stringMatching(/submissions leave \d MiB for everything else/) },
    ]);
    expect((await server.fetch("/jobs")).status).toBe(200);
    expect(await server.post("/echo", 1)).toMatchObject({ status: 200 });
    const key = server.cli(["keys", "create", "--scope", "predict", "--api", "echo"]);
    expect(key.code, key.err).toBe(0);
  });
});

describe.runIf(isOnSqlite)("a full disk", () => {
  const server = new TestServer();
  const isMounted = isOnSqlite && mountSmallDisk(server.dataDir, DISK_MIB);
  const filler = join(server.dataDir, "filler");
  const handled = join(server.dir, "handled");
  const fill = () => {
    for (let mib = 1024 * 1024; mib >= 1; mib = Math.floor(mib / 4))
      for (;;)
        try {
          writeFileSync(filler, Buffer.alloc(mib), { flag: "a" });
        } catch {
          break;
        }
  };
  beforeAll(async () => {
    if (!isMounted) return;
    await server.start();
    const config = JSON.stringify({ handled, slow: 0.02 });
    server.deploy({
      "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: ${config}}\n- name: echo\n  predictor: {path: echo.py}\n`,
      "predictor.py": PREDICTOR,
      "echo.py": ECHO,
    });
  });
  afterAll(async () => {
    rmSync(filler, { force: true });
    await server.stopProcesses();
    if (isMounted) unmount(server.dataDir);
    await server.stop();
  });
  const health = async () => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const response = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
    return [response.status, await response.json()];
  };
  const ids = () => readFileSync(handled, "utf8").trim().split("\n");
  /** It waits for space: while some is left, or at its end. */
  const hasMetTheEnd = (id: string) =>
    /disk is full|for everything else/.test(server.cli(["logs", "jobs", id]).out);

  it.runIf(isMounted)(
    "gives 507 to submissions, while jobs wait and lose nothing",
    async () => {
      const items = Array.from({ length: 300 }, (_, id) => ({ id, ...(id % 10 === 9 ? { bad: true } : {}) }));
      const id = await server.submit("jobs", {
        workers: 2,
        queue_dead_letter_queue: { arn: "full", max_receive_count: 2 },
        item_list: { items, batch_size: 1 },
      });
      await eventually("it runs", async () => (await server.job("jobs", id)).batch_metrics.succeeded > 10);
      fill();
      const padded = { workers: 1, item_list: { items: [{ id: "x".repeat(200_000) }], batch_size: 1 } };
      const refused = await server.post("/jobs", padded);
      expect([refused.status, await refused.json()]).toMatchObject([507, { code: "disk_full" }]);
      expect(await health()).toMatchObject([503, { code: "unhealthy", errors: [{ pointer: "/disk" }] }]);
      expect((await server.job("jobs", id)).end_time).toBeUndefined();
      let before = -1;
      await eventually("nothing moves", async () => {
        const { succeeded } = (await server.job("jobs", id)).batch_metrics;
        const isStill = succeeded === before;
        before = succeeded;
        fill();
        await new Promise((resolve) => setTimeout(resolve, 700));
        return isStill;
      });
      expect((await server.job("jobs", id)).end_time).toBeUndefined();
      rmSync(filler);
      expect(await health()).toMatchObject([200, { status: "ok" }]);
      const job = await server.ended("jobs", id);
      expect(job).toMatchObject({
        status: "status_completed_with_failures",
        batch_metrics: { succeeded: 270, failed: 60 },
      });
      expect(new Set(ids()).size).toBe(300);
      expect(JSON.parse(server.cli(["queue", "get", "full", "-o", "json"]).out)).toMatchObject({
        messages: 30,
      });
      await server.ended("jobs", await server.submit("jobs", padded));
    },
    90_000,
  );

  it.runIf(isMounted)(
    "does not end the server when controller and gateway die: predictions continue, the start waits for space",
    async () => {
      const answers = async () => (await server.post("/echo", 1).catch(() => undefined))?.status === 200;
      fill();
      const said = server.stderr.length;
      process.kill(server.child("controller"), "SIGKILL");
      const since = () => server.stderr.slice(said);
      const hasMet = () => {
        fill();
        return /disk (of the data directory )?is full|no space left/i.test(since());
      };
      await eventually("the start has met the full disk", hasMet, undefined, since);
      for (let i = 0; i < 20; i++) expect(await answers()).toBe(true);
      process.kill(server.child("gateway"), "SIGKILL");
      await eventually("another gateway answers", answers);
      expect(server.parent!.exitCode).toBeNull();
      rmSync(filler);
      await eventually("the controller is back", async () => (await server.fetch("/jobs")).status === 200);
      const job = { workers: 1, item_list: { items: [{ id: 1 }], batch_size: 1 } };
      const ended = await server.ended("jobs", await server.submit("jobs", job));
      expect(ended.status).toBe("status_succeeded");
    },
    90_000,
  );

  it.runIf(isMounted)(
    "answers a stop, gives out no batch, and records it once there is space",
    async () => {
      writeFileSync(handled, "");
      const items = Array.from({ length: 2_000 }, (_, id) => ({ id, bad: true }));
      const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
      await eventually("the job has met the end of the disk", () => {
        fill();
        return ids().length > 0 && hasMetTheEnd(id);
      });
      const stop = () =>
        server.fetch(`/jobs/${id}`, { method: "DELETE", signal: AbortSignal.timeout(15_000) });
      const [answer, again] = await Promise.all([stop(), stop()]);
      expect([answer.status, again.status, await answer.json()]).toMatchObject([
        507,
        507,
        { code: "disk_full", message: expect.stringContaining("gives out no batch any more") },
      ]);
      const before = ids().length;
      expect((await stop()).status).toBe(507);
      expect(ids().length).toBeLessThanOrEqual(before + 1);
      rmSync(filler);
      expect(await server.ended("jobs", id)).toMatchObject({ status: "status_stopped" });
      expect(await stop()).toMatchObject({ status: 200 });
    },
    60_000,
  );

  it.runIf(isMounted)(
    "pauses enqueuing until there is space",
    async () => {
      writeFileSync(handled, "");
      const line = (id: number) => `{"id":${id},"p":"${"y".repeat(900)}"}\n`;
      const path = server.writeInput("large.jsonl", "");
      writeFileSync(
        path.slice("file://".length).replace("large.jsonl", "large.jsonl.gz"),
        gzipSync(Array.from({ length: 12_000 }, (_, id) => line(id)).join("")),
      );
      writeFileSync(filler, Buffer.alloc((DISK_MIB - 12) * 2 ** 20));
      const id = await server.submit("jobs", {
        workers: 2,
        delimited_files: { store_paths: [`${path}.gz`], batch_size: 200 },
      });
      await eventually("enqueuing has met the end of the disk", () => {
        fill();
        return /disk is full|waits for space/.test(server.cli(["logs", "jobs", id]).out);
      });
      expect((await server.job("jobs", id)).status).toBe("status_enqueuing");
      rmSync(filler);
      expect(await server.ended("jobs", id)).toMatchObject({
        status: "status_succeeded",
        total_batch_count: 60,
      });
      expect(ids()).toHaveLength(12_000);
    },
    60_000,
  );

  it.runIf(isMounted)(
    "keeps no controller whose parent is gone: the job continues with the next one",
    async () => {
      const items = Array.from({ length: 400 }, (_, id) => ({ id, bad: true }));
      const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
      await eventually("failed batches meet the end of the disk", () => {
        fill();
        return hasMetTheEnd(id);
      });
      const controller = server.child("controller");
      server.parent!.kill("SIGKILL");
      await eventually("the controller has ended", () => !existsSync(`/proc/${controller}`), 90_000);
      rmSync(filler);
      await server.start();
      const ended = await server.ended("jobs", id, 120_000);
      expect(ended.batch_metrics).toMatchObject({ succeeded: 0, failed: 400 });
    },
    240_000,
  );
});

describe.runIf(isOnSqlite)("a disk without free inodes", () => {
  const server = new TestServer();
  const sockets = runtimeDirectory(server.dataDir);
  const isMounted =
    isOnSqlite && [server.dataDir, sockets].every((path) => mountSmallDisk(path, DISK_MIB, ",nr_inodes=500"));
  const handled = join(server.dir, "handled");
  const useUp = (directory: string) => {
    mkdirSync(join(directory, "filler"));
    for (let i = 0; ; i++)
      try {
        writeFileSync(join(directory, "filler", String(i)), "");
      } catch {
        return;
      }
  };
  const free = (directory: string) => rmSync(join(directory, "filler"), { recursive: true, force: true });
  beforeAll(async () => {
    if (!isMounted) return;
    await server.start();
    server.deploy({
      "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: ${JSON.stringify({ handled })}}\n`,
      "predictor.py": PREDICTOR,
    });
  });
  afterAll(async () => {
    for (const path of [server.dataDir, sockets]) free(path);
    await server.stopProcesses();
    if (isMounted) for (const path of [server.dataDir, sockets]) unmount(path);
    await server.stop();
  });

  it.runIf(isMounted)(
    "pauses a job at its directory, its worker's files and its worker's socket, and ends no job",
    async () => {
      const path = server.writeInput("in.jsonl", '{"id":1}\n{"id":2}\n');
      for (const directory of [server.dataDir, sockets]) useUp(directory);
      const items = { workers: 1, item_list: { items: [{ id: 0, pad: PAD }], batch_size: 1 } };
      const refused = await server.post("/jobs", items);
      expect([refused.status, await refused.json()]).toMatchObject([507, { code: "disk_full" }]);
      const id = await server.submit("jobs", {
        workers: 1,
        delimited_files: { store_paths: [path], batch_size: 1 },
      });
      const untilMs = Date.now() + 1_500;
      await eventually("it has waited for a while", async () => {
        expect(await server.job("jobs", id)).toMatchObject({ status: "status_enqueuing" });
        return Date.now() > untilMs;
      });
      free(server.dataDir);
      const logs = async () => (await server.fetch(`/jobs/${id}/logs`)).text();
      await eventually("a worker has no inode for its socket, and says so", async () =>
        (await logs()).includes("cannot start now: [Errno 28]"),
      );
      expect(await server.job("jobs", id)).toMatchObject({ status: "status_running" });
      free(sockets);
      expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
      expect(readFileSync(handled, "utf8").trim().split("\n").sort()).toEqual(["1", "2"]);
    },
    60_000,
  );
});

describe.runIf(isOnSqlite)("the retention", () => {
  const server = new TestServer();
  const data = (id: string) => [join(server.dataDir, "jobs", id), join(server.dataDir, "logs", "jobs", id)];
  afterAll(() => server.stop());

  it("removes the data of old jobs, earlier if they succeeded, and keeps their records", async () => {
    await server.start({}, ["--keep-jobs", "14", "--keep-failed-jobs", "60"]);
    const config = JSON.stringify({ handled: join(server.dir, "handled") });
    server.deploy({
      "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py, config: ${config}}\n`,
      "predictor.py": PREDICTOR,
    });
    const job = (bad: boolean) => ({
      workers: 1,
      item_list: { items: [{ id: 1, pad: PAD, ...(bad ? { bad } : {}) }], batch_size: 1 },
    });
    const fine = await server.submit("jobs", job(false));
    const failed = await server.submit("jobs", job(true));
    for (const id of [fine, failed]) await server.ended("jobs", id);
    await server.stopProcesses();
    const db = server.openDatabase();
    const log = openLog("test", "/dev/null");
    const day = 86_400_000;
    const logDirectory = (id: string) => join(server.dataDir, "logs", "jobs", id);
    const retention = new Retention({
      db,
      log,
      dataDir: server.dataDir,
      items: itemsInFiles(server.dataDir),
      removeSoon: () => {},
      logDirectory,
      keepMs: 14 * day,
      keepFailedMs: 60 * day,
      boundLogs: async () => 0,
      leftBy: async () => {},
    });
    expect(await retention.runOnce(Date.now() + 13 * day)).toEqual([]);
    expect(await retention.runOnce(Date.now() + 15 * day)).toEqual([fine]);
    expect(data(fine).filter(existsSync)).toEqual([]);
    expect(data(failed).filter(existsSync)).toHaveLength(2);
    expect(await retention.runOnce(Date.now() + 61 * day)).toEqual([failed]);
    expect(await db.all("SELECT * FROM segments")).toEqual([]);
    expect(await retention.runOnce(Date.now() + 61 * day)).toEqual([]);
    await db.close();
    await server.start();
    expect(await server.job("jobs", failed)).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { failed: 1 },
    });
    const redriven = await server.fetch(`/jobs/${failed}/redrive`, { method: "POST" });
    expect([redriven.status, await redriven.text()]).toEqual([409, expect.stringContaining("retention")]);
    expect(server.cli(["doctor"]).out).toMatch(/^disk use +ok +[\d.]+ [KM]iB: .*database [\d.]+ KiB/m);
  }, 60_000);

  it("is a number of days", () => {
    expect(server.cli(["up", "--keep-jobs", "soon"])).toMatchObject({ code: 2 });
  });
});
