/** Many unread lists at once: how much memory they hold, and that they delay no other request. */
import { EventEmitter } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Context } from "hono";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobLogDirectory } from "../../src/contracts/data-layout.ts";
import { SLICE_MS } from "../../src/contracts/limits/event-loop.ts";
import { LISTS_OF_A_KEY_MAX } from "../../src/contracts/limits/responses.ts";
import { streamText } from "../../src/control/answers/stream-text.ts";
import { eventually } from "../harness/eventually.ts";
import { TestServer } from "../harness/server.ts";
import { countTurns } from "../harness/turns.ts";

const FAILS = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): raise ValueError("E" * 90000)
`;
const LARGE = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return "x" * (8 << 20)
`;
/** With their items far more bytes than the sockets on the way hold. */
const BATCHES = 60;
const ITEM = "i".repeat(95_000);

/** Bytes that the process has read, from files and sockets. */
const bytesRead = (pid: number) => Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))![1]);

describe("unread lists of failures", () => {
  const server = new TestServer();
  const open: IncomingMessage[] = [];
  let jobId = "";
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const create = async (scope = "submit") => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const answer = await server.post("/-/keys", { scope }, bearer(token));
    return ((await answer.json()) as { key: string }).key;
  };
  const list = (key: string, query = "?limit=500", accept = "*/*") =>
    read(key, `/fails/${jobId}/failures${query}`, accept);
  /** Its answer is not read. */
  const read = (key: string, path: string, accept = "*/*") =>
    new Promise<number>((resolve, reject) => {
      const headers = { ...bearer(key), accept };
      const ask = httpRequest(server.baseUrl + path, { headers }, (answer) => {
        open.push(answer.on("error", () => {}));
        resolve(answer.statusCode!);
      });
      ask.on("error", reject).end();
    });
  let own = "";

  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml":
        "- {name: fails, kind: BatchAPI, predictor: {path: fails.py}}\n" +
        "- {name: large, kind: BatchAPI, predictor: {path: large.py}}\n",
      "fails.py": FAILS,
      "large.py": LARGE,
    });
    own = await create();
    const items = Array.from({ length: BATCHES }, () => ITEM);
    const job = { workers: 1, item_list: { items, batch_size: 1 } };
    const answer = await server.post("/fails", job, bearer(own));
    jobId = ((await answer.json()) as { job_id: string }).job_id;
    await eventually("all batches have failed", async () => {
      const job = await server.fetch(`/fails/${jobId}`, { headers: bearer(own) });
      return (await job.text()).includes("status_completed_with_failures");
    });
  });
  afterAll(async () => {
    for (const answer of open) answer.destroy();
    await server.stop();
  });

  it("are limited to ten for each key", async () => {
    const other = await create();
    const forms = ["application/json", "application/x-ndjson"];
    const lists = Array.from({ length: LISTS_OF_A_KEY_MAX }, (_, i) => list(own, "?limit=500", forms[i % 2]));
    expect(new Set(await Promise.all(lists))).toEqual(new Set([200]));
    const refused = await server.fetch(`/fails/${jobId}/failures`, { headers: bearer(own) });
    expect([refused.status, await refused.json()]).toEqual([
      429,
      expect.objectContaining({
        code: "rate_limited",
        message: expect.stringContaining("lists of failures"),
      }),
    ]);
    expect(await list(other)).toBe(200);
    open.shift()!.destroy();
    await eventually("there is room for another", async () => (await list(own)) === 200);
  });

  it("are limited like long lists of jobs, of which short ones are not limited", async () => {
    await copyJob(500);
    const key = await create();
    const list = (limit: number) => read(key, `/fails?limit=${limit}`);
    const lists = await Promise.all(Array.from({ length: LISTS_OF_A_KEY_MAX }, () => list(500)));
    expect(new Set(lists)).toEqual(new Set([200]));
    expect(await list(500)).toBe(429);
    expect(await list(10)).toBe(200);
    for (const answer of open.splice(-LISTS_OF_A_KEY_MAX - 2)) answer.destroy();
  });
  /** As if it had been submitted so many times more. A list of 500 is more than the sockets on the way hold. */
  async function copyJob(times: number): Promise<void> {
    const db = server.openDatabase();
    const [job] = await db.all("SELECT * FROM jobs WHERE job_id = ?", [jobId]);
    const names = Object.keys(job!);
    const reason_json = JSON.stringify({ code: "batches_failed", message: "m".repeat(20_000) });
    const copy = `INSERT INTO jobs (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
    await db.transaction(async (tx) => {
      for (let each = 0; each < times; each++) {
        const job_id = `${jobId.slice(0, -4)}${String(each).padStart(4, "0")}`;
        await tx.run(copy, Object.values({ ...job!, reason_json, job_id }));
      }
    });
    await db.close();
  }

  it("leave no room for verifications, which are refused before they read anything", async () => {
    const key = await create();
    const MIB = 1024 * 1024;
    const output = { workers: 1, output: {}, item_list: { items: Array(8).fill("x"), batch_size: 1 } };
    const { job_id } = (await (await server.post("/large", output, bearer(own))).json()) as {
      job_id: string;
    };
    const path = `/large/${job_id}`;
    await eventually("it has ended", async () =>
      (await (await server.fetch(path, { headers: bearer(own) })).text()).includes("status_succeeded"),
    );
    const lists = Array.from({ length: LISTS_OF_A_KEY_MAX }, () => list(key));
    expect(new Set(await Promise.all(lists))).toEqual(new Set([200]));
    const readBefore = bytesRead(server.child("controller"));
    const refused = await server.post(`${path}/verify`, {}, bearer(key));
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining("rate_limited")]);
    expect(bytesRead(server.child("controller")) - readBefore).toBeLessThan(32 * MIB);
    const verified = await server.post(`${path}/verify`, {}, bearer(await create()));
    expect([verified.status, await verified.text()]).toEqual([200, expect.stringContaining('"ok":true')]);
    expect(bytesRead(server.child("controller")) - readBefore).toBeGreaterThan(60 * MIB);
  });

  it("share the limit of ten with unfollowed logs and other long responses", async () => {
    const [admin, other] = [await create("admin"), await create("admin")];
    const line = `2026-11-22T20:00:00.000Z ${"x".repeat(999)}\n`;
    // More than the sockets on the way hold.
    writeFileSync(join(jobLogDirectory(server.dataDir, jobId), "long.log"), line.repeat(16_000), {
      mode: 0o600,
    });
    const letters = { arn: "letters", max_receive_count: 1 };
    const dry = { workers: 1, item_list: { items: [1], batch_size: 1 } };
    await server.post("/fails", { ...dry, queue_dead_letter_queue: letters }, bearer(admin));
    const logs = Array.from({ length: LISTS_OF_A_KEY_MAX }, () => read(admin, `/fails/${jobId}/logs`));
    expect(new Set(await Promise.all(logs))).toEqual(new Set([200]));
    const statuses = async (key: string) => {
      const paths = [
        ...[`/fails/${jobId}/logs`, `/fails/${jobId}/failures`],
        ...["/-/apis/fails/logs", "/-/audit", "/-/queues/letters/messages"],
      ];
      const preview = await server.post("/fails?dryRun=true", dry, bearer(key));
      await preview.text();
      return [...(await Promise.all(paths.map((path) => read(key, path)))), preview.status];
    };
    expect(await statuses(admin)).toEqual(Array(6).fill(429));
    expect(await statuses(other)).toEqual(Array(6).fill(200));
    // Those that are followed have a limit of their own.
    expect(await read(admin, "/-/apis/fails/logs?follow=true")).toBe(200);
  });
});

it("all lists together take one slice per turn of the event loop", async () => {
  const [ANSWERS, CHUNKS] = [20, 5];
  async function* chunks() {
    for (let i = 0; i < CHUNKS; i++) {
      const endMs = performance.now() + SLICE_MS;
      while (performance.now() < endMs);
      yield "x";
    }
  }
  const context = { env: { outgoing: new EventEmitter().setMaxListeners(ANSWERS) } } as unknown as Context;
  const read = () => streamText(context, chunks(), "text/plain").text();
  const { result: texts, turns } = await countTurns(() => Promise.all(Array.from({ length: ANSWERS }, read)));
  expect(new Set(texts)).toEqual(new Set(["x".repeat(CHUNKS)]));
  expect(turns).toBeGreaterThanOrEqual(ANSWERS * CHUNKS);
});
