/** The end of an output: what a person sees of it, what disturbs it, and how it is put right. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "../../../src/base/log.ts";
import { Retention } from "../../../src/batch/end/retention.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import { jobLogDirectory, outputDirectory } from "../../../src/contracts/data-layout.ts";
import { readOutput, WRITER } from "../../harness/outputs.ts";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const ITEMS = Array.from({ length: 40 }, (_, id) => ({ id }));

/** Waits in its first batch until a file is there. */
const WAITER = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.path = config.get("go")
    def predict(self, payload):
        while not os.path.exists(self.path): time.sleep(0.02)
        return payload
`;

/** Does what the server does hours after the end of jobs. */
async function prune(server: TestServer): Promise<void> {
  const { dataDir } = server;
  const db = server.openDatabase();
  const logDirectory = (id: string) => jobLogDirectory(dataDir, id);
  const retention = new Retention({
    ...{ db, log: openLog("test", "/dev/null"), dataDir, logDirectory },
    ...{ items: itemsInFiles(dataDir), removeSoon: () => {} },
    ...{ keepMs: 1000, keepFailedMs: 1000, boundLogs: async () => 0, leftBy: async () => {} },
  });
  expect(await retention.runOnce(Date.now() + 60_000)).toHaveLength(2);
  await db.close();
}

describe("an output that ends", () => {
  let server: TestServer;
  let directory: string;
  beforeEach(async () => {
    server = new TestServer();
    await server.start();
    directory = join(server.inputs, "out");
  });
  afterEach(() => server.stop());

  const submission = (output: object, config = {}) => ({
    ...{ workers: 1, config, output },
    item_list: { items: ITEMS, batch_size: 4 },
  });
  const toDirectory = () => ({ store_path: `file://${directory}` });

  it("is shown with the job, printed by the command line, and verified", async () => {
    server.deploy(project(WRITER));
    const id = await server.submit("jobs", submission(toDirectory()));
    await server.ended("jobs", id);
    const envelope = (await (await server.fetch(`/jobs/${id}`)).json()) as { job_status: { output: object } };
    const { rows, manifest } = readOutput(join(directory, id));
    expect(envelope.job_status.output).toEqual({
      ...{ path: `file://${directory}/${id}/`, batches: 10, parts: 1, rows: 40 },
      ...{ bytes: manifest.parts[0]!.bytes, has_manifest: true },
    });
    expect(server.cli(["job", "get", "jobs", id]).out).toMatch(
      /output: file:.*\nbatches +rows +parts +size +manifest\n10 +40 +1 +\S+ KiB +written\n/,
    );
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`);
    expect(server.cli(["job", "results", "jobs", id]).out).toBe(lines.join(""));
    const file = join(server.dir, "exported.jsonl");
    server.cli(["job", "results", "jobs", id, "--from", "1", "--to", "2", "--export", file]);
    expect(readFileSync(file, "utf8")).toBe(lines.slice(4, 8).join(""));
    expect(server.cli(["job", "verify", "jobs", id])).toMatchObject({
      ...{ code: 0, out: expect.stringMatching(/^the output is complete: 1 parts, 10 batches, 40 rows/) },
    });
  });

  it("differs from what was written if a part was changed, replaced or removed", async () => {
    server.deploy(project(WRITER));
    const spoiled: [(part: string) => void, RegExp][] = [
      [(part) => appendFileSync(part, "{}\n"), /more than the \d+ bytes that were written/],
      [(part) => writeFileSync(part, "{}\n".repeat(statSync(part).size / 3)), /is no row/],
      [(part) => writeFileSync(part, ""), /sha256.*\n.*0 rows of 40/s],
      [(part) => rmSync(part), /is missing/],
    ];
    for (const [spoil, message] of spoiled) {
      const id = await server.submit("jobs", submission(toDirectory()));
      await server.ended("jobs", id);
      spoil(join(directory, id, readOutput(join(directory, id)).manifest.parts[0]!.path));
      const { code, err } = server.cli(["job", "verify", "jobs", id]);
      expect([code, err]).toEqual([1, expect.stringMatching(message)]);
    }
  });

  it("does not replace a manifest that is not its own, and continues once that is moved away", async () => {
    server.deploy(project(WAITER));
    const go = join(server.dir, "go");
    const id = await server.submit("jobs", submission(toDirectory(), { go }));
    const manifest = join(directory, id, "manifest.json");
    mkdirSync(join(directory, id), { recursive: true });
    writeFileSync(manifest, "{}");
    writeFileSync(go, "");
    expect(await server.ended("jobs", id)).toMatchObject({
      ...{ status: "status_unexpected_error", batch_metrics: { succeeded: 10 } },
      reason: {
        code: "output_conflict",
        message: expect.stringContaining("move it away"),
        hint: expect.stringContaining(`quern job resume jobs ${id}`),
      },
    });
    expect(readFileSync(manifest, "utf8")).toBe("{}");
    renameSync(manifest, join(server.dir, "moved"));
    server.cli(["job", "resume", "jobs", id]);
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
    expect(readOutput(join(directory, id)).rows).toHaveLength(40);
    // Nothing is left to do then.
    expect((await server.fetch(`/jobs/${id}/resume`, { method: "POST" })).status).toBe(409);
  });

  it.each([
    ["directory", (path: string) => void mkdirSync(path)],
    ["pipe", (path: string) => void execFileSync("mkfifo", [path])],
  ])("does not replace a %s in the place of its manifest", async (_what, make) => {
    server.deploy(project(WAITER));
    const go = join(server.dir, "go");
    const id = await server.submit("jobs", submission(toDirectory(), { go }));
    const manifest = join(directory, id, "manifest.json");
    mkdirSync(join(directory, id), { recursive: true });
    make(manifest);
    writeFileSync(go, "");
    expect(await server.ended("jobs", id)).toMatchObject({ reason: { code: "output_conflict" } });
    renameSync(manifest, join(server.dir, "moved"));
    server.cli(["job", "resume", "jobs", id]);
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
  });

  it("writes its manifest anew if somebody removed the one of the round before", async () => {
    const fails = join(server.dir, "fails");
    writeFileSync(fails, "");
    server.deploy(
      project(`
import os
class PythonPredictor:
    def __init__(self, config): self.path = config.get("fails")
    def predict(self, payload):
        if payload[0]["id"] == 4 and os.path.exists(self.path): raise ValueError("not yet")
        return payload
`),
    );
    const id = await server.submit("jobs", submission(toDirectory(), { fails }));
    await server.ended("jobs", id);
    rmSync(fails);
    rmSync(join(directory, id, "manifest.json"));
    expect((await server.fetch(`/jobs/${id}/redrive`, { method: "POST" })).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
    expect(readOutput(join(directory, id)).rows).toHaveLength(40);
  });

  it("goes with the job's other data if the server keeps it, and stays in a store", async () => {
    server.deploy(project(WRITER));
    const inServer = await server.submit("jobs", submission({}));
    const inStore = await server.submit("jobs", submission(toDirectory()));
    for (const id of [inServer, inStore]) await server.ended("jobs", id);
    const kept = outputDirectory(server.dataDir, inServer);
    expect(existsSync(join(kept, "manifest.json"))).toBe(true);
    await server.stopProcesses();
    await prune(server);
    await server.start();
    expect(existsSync(kept)).toBe(false);
    expect(readOutput(join(directory, inStore)).rows).toHaveLength(40);
    for (const id of [inServer, inStore]) {
      const response = await server.fetch(`/jobs/${id}/results`);
      expect([response.status, await response.text()]).toEqual([404, expect.stringContaining("retention")]);
    }
  });
});
