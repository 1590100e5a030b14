/** A backup of a server that works, and the server that is made of it. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { type OutputRow, parseRows, readOutput } from "../../harness/outputs.ts";
import { killAll } from "../../harness/processes.ts";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";

/** Predictions of `bytes`. The batches after GATED wait for a file. */
const GATED = 800;
const GATE = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.gate, self.text = config.get("gate"), "x" * config.get("bytes", 0)
    def predict(self, payload):
        while self.gate and payload[0]["id"] >= ${GATED} and not os.path.exists(self.gate): time.sleep(0.02)
        return [{**item, "text": self.text} for item in payload]
`;
const BATCHES = 900;
const ITEMS = Array.from({ length: BATCHES }, (_, id) => ({ id }));
/** 250 make a part of an output. */
const LARGE_BYTES = 270_000;

describe.runIf(isOnSqlite)("a backup of a server at work", () => {
  const original = new TestServer();
  const restored = new TestServer();
  const archive = join(original.dir, "quern.tar");
  const out = join(original.inputs, "out");
  const gate = join(original.inputs, "go");
  const ids: Record<"ended" | "inServer" | "inDirectory", string> = {
    ended: "",
    inServer: "",
    inDirectory: "",
  };

  const submit = (config: object, store_path: string) =>
    original.submit("jobs", {
      ...{ workers: 2, config, output: { store_path } },
      item_list: { items: ITEMS, batch_size: 1 },
    });
  const partsOf = (id: string) => {
    const directory = join(out, id);
    return existsSync(directory) ? readdirSync(directory).filter((name) => /^part-/.test(name)).length : 0;
  };
  const idsOf = (rows: readonly OutputRow[]) =>
    rows.map(({ prediction }) => (prediction as { id: number }).id);

  beforeAll(async () => {
    await original.start();
    original.deploy(project(GATE));
    ids.ended = await submit({}, "quern:");
    await original.ended("jobs", ids.ended);
    ids.inServer = await submit({ gate }, "quern:");
    ids.inDirectory = await submit({ gate, bytes: LARGE_BYTES }, `file://${out}`);
    await eventually("there is a part", () => partsOf(ids.inDirectory) > 0, 60_000);
  }, 120_000);
  afterAll(async () => {
    await restored.stop();
    await original.stop();
  }, 120_000);

  it("is taken while predictions and jobs go on", async () => {
    let isOver = false;
    const statuses = new Map<number, number>();
    const predict = async () => {
      while (!isOver) {
        const { status } = await original.post("/echo", [{ id: 1 }]);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const predicting = [predict(), predict()];
    const taken = await original.cliBeside(["backup", archive]);
    isOver = true;
    await Promise.all(predicting);
    expect(taken).toMatchObject({ code: 0, err: expect.stringContaining(`wrote ${archive}`) });
    expect([...statuses.keys()]).toEqual([200]);
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    expect(readdirSync(original.dir)).not.toContain("quern.tar.partial");
    await eventually("what it was made of is removed", () => {
      const left = join(original.dataDir, "backups");
      return !existsSync(left) || readdirSync(left).length === 0;
    });
    for (const id of [ids.inServer, ids.inDirectory])
      expect((await original.job("jobs", id)).end_time).toBeUndefined();
  }, 120_000);

  it("is an archive that other programs can read and check", () => {
    const unpacked = join(original.dir, "unpacked");
    mkdirSync(unpacked);
    execFileSync("tar", ["xf", archive, "-C", unpacked]);
    execFileSync("sh", ["-c", "sha256sum --check --quiet SHA256SUMS"], { cwd: unpacked });
    expect(readdirSync(unpacked).sort()).toEqual([
      ...["SHA256SUMS", "backup.json", "jobs", "outputs", "projects", "quern.db"],
    ]);
  });

  it("is restored after the original is lost: its jobs go on, and each output has each item once", async () => {
    // The original writes a part that the backup does not know.
    await eventually("there is another part", () => partsOf(ids.inDirectory) > 1, 60_000);
    killAll([original.parent!.pid!, original.child("gateway"), original.child("controller")]);
    killAll(original.workers());
    expect(restored.cli(["restore", archive, "--data-dir", restored.dataDir])).toMatchObject({
      code: 0,
      out: expect.stringContaining("2 APIs, 3 jobs, of which 2 go on"),
    });
    await restored.start({}, ["--allow-local-root", original.inputs]);
    writeFileSync(gate, "");
    const batch_metrics = { succeeded: BATCHES, failed: 0 };
    for (const id of Object.values(ids))
      expect(await restored.ended("jobs", id)).toMatchObject({ status: "status_succeeded", batch_metrics });
    const all = ITEMS.map(({ id }) => id);
    for (const id of [ids.ended, ids.inServer]) {
      expect(restored.cli(["job", "verify", "jobs", id])).toMatchObject({ code: 0 });
      const response = await restored.fetch(`/jobs/${id}/results`);
      expect(idsOf(parseRows(await response.text()))).toEqual(all);
    }
    expect(idsOf(readOutput(join(out, ids.inDirectory)).rows)).toEqual(all);
    expect(await (await restored.post("/echo", [{ id: 7 }])).json()).toEqual([{ id: 7, text: "" }]);
  }, 180_000);

  it("is not restored into a directory in use, and leaves nothing behind if it is damaged", async () => {
    expect(restored.cli(["restore", archive, "--data-dir", restored.dataDir])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${restored.dataDir} is in use`),
    });
    const bytes = readFileSync(archive);
    const damaged = join(original.dir, "damaged.tar");
    const target = join(original.dir, "none");
    const cases: [string, () => Buffer, RegExp][] = [
      ["cut off", () => bytes.subarray(0, bytes.length / 2), /it (is no whole archive|has no SHA256SUMS)/],
      ["cut off before the checksums", () => bytes.subarray(0, bytes.indexOf("SHA256SUMS")), /no SHA256SUMS/],
      ["changed", () => flipped(bytes, bytes.indexOf("class PythonPredictor")), /is damaged or missing/],
      ["no archive", () => Buffer.from("hello\n".repeat(1_000)), /is no whole archive/],
    ];
    for (const [what, make, why] of cases) {
      writeFileSync(damaged, make());
      const { code, err } = restored.cli(["restore", damaged, "--data-dir", target]);
      expect([code, err], what).toEqual([1, expect.stringMatching(why)]);
    }
    expect(existsSync(target)).toBe(false);
    expect(readdirSync(original.dir).filter((name) => name.includes("restoring"))).toEqual([]);
  }, 60_000);

  it("does not replace a file, and needs the admin scope", async () => {
    expect(restored.cli(["backup", archive])).toMatchObject({
      code: 5,
      err: expect.stringContaining("exists"),
    });
    const submitKey = restored.cli(["keys", "create", "--scope", "submit"]).out.trim();
    const headers = { authorization: `Bearer ${submitKey}` };
    expect((await restored.fetch("/-/backups", { method: "POST", headers })).status).toBe(403);
  });

  it("leaves nothing behind if its reader leaves or the server is killed, and one is taken at a time", async () => {
    const admin = restored.cli(["keys", "create", "--scope", "admin"]).out.trim();
    const take = (signal?: AbortSignal) =>
      restored.fetch("/-/backups", {
        ...{ method: "POST", headers: { authorization: `Bearer ${admin}` } },
        ...(signal === undefined ? {} : { signal }),
      });
    const left = () => {
      const directory = join(restored.dataDir, "backups");
      return existsSync(directory) ? readdirSync(directory) : [];
    };
    // More than fits between the server and a reader who does not read.
    const large = join(restored.dataDir, "outputs", "large");
    writeFileSync(large, "");
    truncateSync(large, 64 * 1024 * 1024);
    const leaving = new AbortController();
    const reader = await take(leaving.signal);
    expect(left()).toHaveLength(1);
    expect((await take()).status).toBe(409);
    leaving.abort();
    await reader.arrayBuffer().catch(() => {});
    await eventually("the next backup can be taken", async () => {
      const next = await take();
      await next.arrayBuffer();
      return next.status === 200;
    });
    await eventually("nothing is left", () => left().length === 0);
    const cut = await take();
    expect(left()).toHaveLength(1);
    process.kill(restored.child("controller"), "SIGKILL");
    await expect(cut.arrayBuffer()).rejects.toThrow();
    await eventually("what it left is removed", () => left().length === 0);
  }, 60_000);
});

describe.runIf(isOnSqlite && isS3Installed)("a backup in a bucket", () => {
  let s3: TestS3;
  let original: TestServer;
  let restored: TestServer;
  beforeAll(async () => {
    s3 = await startS3();
    [original, restored] = [new TestServer(s3.env), new TestServer(s3.env)];
    await original.start();
    original.deploy(project(GATE));
  }, 60_000);
  afterAll(async () => {
    await restored?.stop();
    await original?.stop();
    await s3?.stop();
  }, 60_000);

  it("is written and restored with the credentials of the command", async () => {
    const address = "s3://bucket/backups/quern.tar";
    expect(await original.cliBeside(["backup", address])).toMatchObject({ code: 0 });
    await original.stopProcesses();
    const restore = (from: string) => restored.cliBeside(["restore", from, "--data-dir", restored.dataDir]);
    expect(await restore("s3://bucket/none.tar")).toMatchObject({
      code: 1,
      err: expect.stringContaining("none.tar"),
    });
    expect(await restore(address)).toMatchObject({ code: 0 });
    await restored.start();
    await eventually(
      "its API serves",
      async () => (await restored.post("/echo", [{ id: 1 }])).status === 200,
    );
  }, 60_000);
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = copy[at]! ^ 1;
  return copy;
}
