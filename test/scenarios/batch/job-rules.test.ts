/**
 * Rules of docs/contract/jobs.md, submitting.md, errors.md and failing-batches.md that no larger test covers, over real
 * HTTP.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serverOver } from "../../harness/answering-stores.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const overItems = (items: unknown[], workers = 1) => ({ workers, item_list: { items, batch_size: 1 } });

describe("a job", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(OBEDIENT), { wait: false });
  });
  afterAll(() => server.stop());
  const path = (name: string) => join(server.dir, name);
  const begun = (name: string) => eventually(`${name} has begun`, () => existsSync(path(name)));

  it("counts a batch that a worker has as queued", async () => {
    const items = [{ do: "await", path: path("open"), touch: path("first") }, 2, 3];
    const id = await server.submit("jobs", overItems(items));
    await begun("first");
    const { batches_in_queue, batch_metrics } = await server.job("jobs", id);
    expect([batches_in_queue, batch_metrics.succeeded]).toEqual([3, 0]);
    writeFileSync(path("open"), "");
    expect(await server.ended("jobs", id)).toMatchObject({ batches_in_queue: 0 });
  });

  it("has no more workers than batches", async () => {
    const items = ["a", "b"].map((name) => ({ do: "await", path: path("go"), touch: path(name) }));
    const id = await server.submit("jobs", overItems(items, 5));
    await Promise.all([begun("a"), begun("b")]);
    expect((await server.job("jobs", id)).worker_counts).toMatchObject({
      running: 2,
      pending: 0,
      initializing: 0,
      succeeded: 0,
    });
    writeFileSync(path("go"), "");
    expect(await server.ended("jobs", id)).toMatchObject({ status: "status_succeeded" });
  });

  it("keeps the version of the API that it was submitted to", async () => {
    const versions = (version: string) =>
      project(`
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        log, gate = payload[0]
        with open(log, "a") as file: file.write("${version} ")
        while not os.path.exists(gate): time.sleep(0.02)
`);
    server.deploy(versions("former"), { wait: false });
    const items = [1, 2, 3].map(() => [path("versions"), path("deployed")]);
    const id = await server.submit("jobs", overItems(items));
    await begun("versions");
    server.deploy(versions("new"), { wait: false });
    writeFileSync(path("deployed"), "");
    expect(await server.ended("jobs", id)).toMatchObject({ status: "status_succeeded" });
    expect(readFileSync(path("versions"), "utf8")).toBe("former former former ");
    server.deploy(project(OBEDIENT), { wait: false });
  });

  it.each(["/jobs", "/jobs?jobID="])("is not stopped by DELETE %s, which names no job", async (address) => {
    const response = await server.fetch(address, { method: "DELETE" });
    const { code } = (await response.json()) as { code: string };
    expect([response.status, code]).toEqual([400, "job_id_required"]);
  });

  it.each(["", "01m7yh8kp1sb34pka3sxpajz6p"])("is not submitted by a POST with jobID=%s", async (named) => {
    const list = async () => (await server.fetch("/jobs")).text();
    const before = await list();
    const response = await server.post(`/jobs?jobID=${named}`, {
      workers: 1,
      item_list: { items: [1], batch_size: 1 },
    });
    const { code, message } = (await response.json()) as { code: string; message: string };
    expect([response.status, code]).toEqual([400, "invalid_request"]);
    expect(message).toContain("send it without jobID");
    expect(await list()).toBe(before);
  });

  it("with more than 20 errors reports the first 20, and counts all", async () => {
    const store_paths = Array.from({ length: 25 }, () => "ftp://a/b");
    const response = await server.post("/jobs", {
      workers: 1,
      file_path_lister: { store_paths, batch_size: 1 },
    });
    const answer = (await response.json()) as { errors: unknown[]; errors_total: number };
    expect([response.status, answer.errors.length, answer.errors_total]).toEqual([400, 20, 25]);
  });
});

describe("a store that lists slowly", () => {
  const empty = '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';
  let delayMs = 11_000;
  const listing = createServer((_, response) => {
    setTimeout(() => response.setHeader("content-type", "application/xml").end(empty), delayMs);
    delayMs = 0;
  });
  let server: TestServer;
  beforeAll(async () => {
    server = await serverOver(listing);
    await server.start();
    server.deploy(project(OBEDIENT), { wait: false });
  });
  afterAll(async () => {
    await server.stop();
    listing.close();
    listing.closeAllConnections();
  });

  it("does not hold up a submission; the job fails if nothing matches", async () => {
    const lister = { store_paths: ["s3://bucket/images/"], batch_size: 1 };
    const id = await server.submit("jobs", { workers: 1, file_path_lister: lister });
    expect((await server.job("jobs", id)).end_time).toBeUndefined();
    expect(await server.ended("jobs", id)).toMatchObject({ status: "status_enqueue_failed" });
  });
});
