/** Four hundred followers of results that nobody reads, as many as four keys may have: the memory that they hold. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { STREAMS_OF_A_KEY_MAX } from "../../src/contracts/limits/responses.ts";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const KEYS = 4;
/** Rows that no compression makes much smaller, and more of them than the sockets on the way hold. */
const RANDOM = `
import base64, os

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return base64.b64encode(os.urandom(3 << 20)).decode()
`;

const out = mkdtempSync(join(tmpdir(), "quern-unread-"));
const open: IncomingMessage[] = [];
let server: TestServer;
// A server for each kind: memory that one has left free would not be seen to be used by the next.
beforeEach(async () => {
  server = new TestServer({ QUERN_ALLOW_LOCAL_ROOT: out });
  await server.start();
  server.deploy(project(RANDOM), { wait: false });
});
afterEach(async () => {
  for (const answer of open.splice(0)) answer.destroy();
  await server.stop();
});
afterAll(() => rmSync(out, { recursive: true }));

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const admin = () => bearer(readFileSync(join(server.dataDir, "admin-token"), "utf8").trim());
const create = async () =>
  ((await (await server.post("/-/keys", { scope: "submit" }, admin())).json()) as { key: string }).key;

async function endedJob(output: object): Promise<string> {
  const job = { workers: 1, output, item_list: { items: Array(16).fill(1), batch_size: 1 } };
  const submitted = await server.post("/jobs", job, admin());
  const path = `/jobs/${((await submitted.json()) as { job_id: string }).job_id}`;
  const status = async () => (await server.fetch(path, { headers: admin() })).text();
  await eventually("it has ended", async () => (await status()).includes("status_succeeded"), 60_000);
  return path;
}

/** Its status; the rest is not read. */
function follow(path: string, key: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const url = `${server.baseUrl}${path}/results?follow=true`;
    const ask = httpRequest(url, { headers: bearer(key), agent: false }, (answer) => {
      open.push(answer.on("error", () => {}));
      resolve(answer.statusCode!);
    });
    ask.on("error", reject).end();
  });
}

it.each<[string, number, object]>([
  ["plain", 300, {}],
  // Each holds a window of 512 KiB.
  ["compressed", 450, { store_path: `file://${out}`, compression: "zstd" }],
])("unread followers of %s results hold less than %i MiB", async (_, most, output) => {
  const path = await endedJob(output);
  const keys = await Promise.all(Array.from({ length: KEYS }, create));
  const controller = server.child("controller");
  resetPeak(controller);
  const before = peakMiB(controller);
  for (const key of keys) {
    const all = Array.from({ length: STREAMS_OF_A_KEY_MAX }, () => follow(path, key));
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]));
  }
  await eventually("no more of the output is read", () => isIdle(controller), 100_000);
  const held = peakMiB(controller) - before;
  expect(held).toBeLessThan(most);
});

/** Whether a process has read nothing for half a second. */
async function isIdle(pid: number): Promise<boolean> {
  const read = () => Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))![1]);
  const before = read();
  await new Promise((resolve) => setTimeout(resolve, 500));
  return read() - before < 1024 * 1024;
}
