/** Jobs over S3, through a real server that speaks it: input, refusals, and a store that goes away in the middle. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { applicationServer } from "../../harness/iris-example.ts";
import { readOutput } from "../../harness/outputs.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { root, TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";

describe.runIf(isS3Installed)("a job over S3", () => {
  let s3: TestS3;
  let server: TestServer;
  let handled: string;

  beforeAll(async () => {
    s3 = await startS3();
    server = new TestServer(s3.env);
    await server.start();
    handled = join(server.dir, "handled.log");
    server.deploy(project(OBEDIENT, { predictorFields: `, config: {log: ${JSON.stringify(handled)}}` }));
  }, 60_000);
  afterAll(async () => {
    await server?.stop();
    await s3?.stop();
  });

  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `{"id":${from + i}}\n`).join("");
  /** The log that the server writes about a job; the file is created with its first line. */
  const serverLog = (id: string) => {
    const file = join(server.dataDir, "logs", "jobs", id, "server.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  const handledIds = () => readFileSync(handled, "utf8").trim().split("\n");
  /** Batches have no order: those that wait behind a slow one go back, and are handed out again. */
  const sortedIds = () =>
    handledIds()
      .map(Number)
      .sort((a, b) => a - b);
  const refusal = async (job: unknown, of = server) => {
    const response = await of.post("/jobs", job);
    return { status: response.status, ...((await response.json()) as { code: string; message: string }) };
  };
  const overLines = (store_paths: string[]) => ({
    workers: 1,
    delimited_files: { store_paths, batch_size: 10 },
  });

  it("reads lines, plain and compressed, and lists paths", async () => {
    writeFileSync(handled, "");
    await s3.put("lines/a.jsonl", lines(0, 5_000));
    await s3.put("lines/b.jsonl.gz", gzipSync(lines(5_000, 7_000)));
    await s3.put("lines/c.jsonl", lines(7_000, 7_003));
    const job = await server.ended("jobs", await server.submit("jobs", overLines(["s3://bucket/lines/"])));
    expect(job).toMatchObject({ status: "status_succeeded", total_batch_count: 701 });
    expect(sortedIds()).toEqual(Array.from({ length: 7_003 }, (_, i) => i));

    writeFileSync(handled, "");
    for (let i = 0; i < 20; i++) await s3.put(`images/${i % 2}/img_${i}.jpg`, "x");
    const lister = {
      store_paths: ["s3://bucket/images/"],
      includes: ["s3://bucket/images/**.jpg"],
      excludes: ["**_3.jpg", "s3://bucket/images/0/*"],
      batch_size: 2,
    };
    const preview = await server.post("/jobs?dryRun=true", { workers: 1, file_path_lister: lister });
    const expected = Array.from({ length: 20 }, (_, i) => i)
      .filter((i) => i % 2 === 1 && i !== 3)
      .map((i) => `s3://bucket/images/1/img_${i}.jpg`)
      .sort();
    expect(await preview.json()).toEqual({ files: expected, file_count: 9, total_bytes: 9, batch_count: 5 });
    await server.ended("jobs", await server.submit("jobs", { workers: 1, file_path_lister: lister }));
    expect(handledIds()).toEqual(expected);
  });

  it("of Cortex's image-classifier reads the files that the patterns select, and aggregates the results in the bucket", async () => {
    const pictures = join(root, "examples", "image-files", "pictures");
    const names = readdirSync(pictures).filter((name) => name.endsWith(".pgm"));
    expect(names.length).toBeGreaterThan(20);
    for (const [i, name] of names.entries())
      await s3.put(`photos/${i % 3}/${name}`, readFileSync(join(pictures, name)));
    await s3.put("photos/0/readme.txt", "no picture");
    const other = applicationServer({ ...s3.env, AWS_DEFAULT_REGION: "us-east-1" });
    await other.start();
    try {
      const project = join(root, "test", "former-examples", "image-classifier");
      expect(other.cli(["deploy", project])).toMatchObject({ code: 0 });
      const id = await other.submit("image-classifier", {
        workers: 2,
        file_path_lister: {
          s3_paths: ["s3://bucket/photos/"],
          includes: ["s3://bucket/photos/**.pgm"],
          excludes: ["**_is_0.pgm"],
          batch_size: 4,
        },
        config: { dest_s3_dir: "s3://bucket/results" },
      });
      const job = await other.ended("image-classifier", id, 120_000);
      const chosen = names.filter((name) => !name.endsWith("_is_0.pgm"));
      expect(job, other.cli(["logs", "image-classifier", id]).out.slice(-2000)).toMatchObject({
        status: "status_succeeded",
        total_batch_count: Math.ceil(chosen.length / 4),
      });
      const results = join(s3.directory, "results", id);
      expect(readdirSync(results).filter((name) => name.startsWith(id))).toHaveLength(job.total_batch_count!);
      const text = readFileSync(join(results, "aggregated_results.json"), "utf8");
      const answers = JSON.parse(text) as { path: string; class: number }[];
      expect(answers.map(({ path }) => path.split("/").pop()).sort()).toEqual(chosen.sort());
      const right = answers.filter((answer) => answer.path.endsWith(`_is_${answer.class}.pgm`)).length;
      expect(right / answers.length).toBeGreaterThan(0.9);
    } finally {
      await other.stop();
    }
  }, 180_000);

  it("reports an invalid address before a job is made", async () => {
    expect(await refusal(overLines(["s3://"]))).toMatchObject({ status: 400, code: "invalid_request" });
    expect(await refusal(overLines(["s3://no-such-bucket/x"]))).toMatchObject({
      status: 400,
      code: "bucket_not_found",
      message: expect.stringContaining("s3://no-such-bucket/x") as string,
    });
    expect(await refusal(overLines(["s3://bucket/nothing-here"]))).toMatchObject({
      status: 400,
      code: "no_files_found",
    });
  });

  it.each([
    ["no credentials", { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" }, "no credentials"],
    ["a wrong key", { AWS_ACCESS_KEY_ID: "someone-else" }, "…else"],
    ["a wrong secret", { AWS_SECRET_ACCESS_KEY: "guess" }, "SignatureDoesNotMatch"],
    ["a wrong region", { AWS_REGION: "eu-west-9" }, "AWS_REGION"],
  ])("is refused if the store denies access: %s", async (_, env, word) => {
    const other = new TestServer({ ...s3.env, ...env, HOME: "/nonexistent" });
    await other.start();
    try {
      other.deploy(project(OBEDIENT));
      const refused = await refusal(overLines(["s3://bucket/lines/"]), other);
      expect(refused).toMatchObject({ status: 502, code: "store_forbidden" });
      expect(refused.message).toContain(word);
      expect(refused.message).not.toContain("quern-secret");
    } finally {
      await other.stop();
    }
  });

  it("reads public objects without credentials", async () => {
    await s3.makePublic();
    const none = { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "", HOME: "/nonexistent" };
    const other = new TestServer({ ...s3.env, ...none });
    await other.start();
    try {
      other.deploy(project(OBEDIENT));
      const job = await other.ended("jobs", await other.submit("jobs", overLines(["s3://bucket/lines/"])));
      expect(job).toMatchObject({ status: "status_succeeded", total_batch_count: 701 });
    } finally {
      await other.stop();
    }
  });

  it("is refused while the store is unreachable", async () => {
    s3.proxy!.set({ kind: "answer", status: 503 });
    expect(await refusal(overLines(["s3://bucket/lines/"]))).toMatchObject({
      status: 502,
      code: "store_unreachable",
    });
    s3.proxy!.set({ kind: "none" });
  });

  it("fails with a reason if its input changes before it has run", async () => {
    await s3.put(
      "changing.jsonl",
      `{"do":"sleep","seconds":3}\n${`{"id":"${"x".repeat(1000)}"}\n`.repeat(5_000)}`,
    );
    const id = await server.submit("jobs", {
      workers: 1,
      delimited_files: { store_paths: ["s3://bucket/changing.jsonl"], batch_size: 1 },
    });
    await eventually("it runs", async () => (await server.job("jobs", id)).status === "status_running");
    await s3.put("changing.jsonl", "{}\n");
    const job = await server.ended("jobs", id);
    expect(job.status).toBe("status_enqueue_failed");
    expect(job.reason!.message).toContain("s3://bucket/changing.jsonl was changed after it was enqueued");
  });

  it("ends correctly if the store is killed during the listing and comes back", async () => {
    writeFileSync(handled, "");
    for (let folder = 0; folder < 30; folder++) {
      mkdirSync(join(s3.directory, "listed", `f${folder}`), { recursive: true });
      for (let i = 0; i < 1000; i++) writeFileSync(join(s3.directory, "listed", `f${folder}`, `k${i}`), "x");
    }
    const lister = { store_paths: ["s3://bucket/listed/"], batch_size: 100 };
    const before = s3.proxy!.connections;
    const id = await server.submit("jobs", { workers: 1, file_path_lister: lister });
    s3.kill();
    expect(s3.proxy!.connections).toBeGreaterThanOrEqual(before);
    const log = () => serverLog(id);
    await eventually("the log tells of it", () => log().includes("trying again"));
    expect(await server.job("jobs", id)).toMatchObject({
      status: "status_enqueuing",
      waiting: expect.stringMatching(/^it tries again: the store of s3:/),
    });
    await s3.restart();
    expect(await server.ended("jobs", id)).toMatchObject({
      status: "status_succeeded",
      total_batch_count: 300,
    });
    expect(new Set(handledIds()).size).toBe(30_000);
    expect(handledIds()).toHaveLength(30_000);
  }, 60_000);

  it("waits with its output for a store that is away, says so, and runs no batch again", async () => {
    writeFileSync(handled, "");
    const path = join(server.dir, "go");
    const items = Array.from({ length: 50 }, (_, id) => (id === 0 ? { id, do: "await", path } : { id }));
    const output = { store_path: "s3://bucket/out" };
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 5 }, output });
    s3.kill();
    writeFileSync(path, "");
    await eventually("all batches are done", async () => {
      const { batch_metrics, waiting } = await server.job("jobs", id);
      return batch_metrics.succeeded === 10 && /^it tries again: the store of s3:/.test(waiting ?? "");
    });
    await s3.restart();
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_succeeded", output: { rows: 50, has_manifest: true } });
    expect(job.waiting).toBeUndefined();
    expect(handledIds()).toHaveLength(50);
    expect(readOutput(join(s3.directory, "out", id)).rows).toHaveLength(50);
  });

  it("says that it waits with its manifest, which is all that is left of it", async () => {
    s3.proxy!.set({ kind: "cut-of", text: "/manifest.json" });
    const output = { store_path: "s3://bucket/out" };
    const items = [{ id: 1 }, { id: 2 }];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 }, output });
    await eventually("it waits", async () =>
      /^it tries again: the store of s3:.*manifest\.json/.test((await server.job("jobs", id)).waiting ?? ""),
    );
    const response = await server.fetch(`/jobs/${id}`, { method: "DELETE" });
    const { message } = (await response.json()) as { message: string };
    expect([response.status, message]).toEqual([
      409,
      `job ${id} cannot be stopped: its work is done: it ends (status_succeeded) once its manifest is written`,
    ]);
    s3.proxy!.set({ kind: "none" });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_succeeded", output: { rows: 2, has_manifest: true } });
    expect(job.waiting).toBeUndefined();
  });

  it("ends correctly if the store is killed during enqueuing and during the job, and comes back", async () => {
    writeFileSync(handled, "");
    const padding = "x".repeat(400);
    const text = Array.from({ length: 300_000 }, (_, i) => `{"id":${i},"p":"${padding}"}\n`).join("");
    writeFileSync(join(s3.directory, "large.jsonl"), text);
    const id = await server.submit("jobs", {
      workers: 2,
      delimited_files: { store_paths: ["s3://bucket/large.jsonl"], batch_size: 100 },
    });
    s3.kill();
    const log = () => serverLog(id);
    await eventually("the log tells of it", () => log().includes("trying again"));
    await s3.restart();
    await eventually("it runs", async () => (await server.job("jobs", id)).batch_metrics.succeeded > 0);
    s3.kill();
    await eventually("the log tells of it again", () => log().split("trying again").length > 3);
    await s3.restart();
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_succeeded", total_batch_count: 3_000 });
    expect(handledIds()).toHaveLength(300_000);
    expect(existsSync(join(server.dataDir, "jobs", id, "items.jsonl"))).toBe(true);
    expect(readFileSync(join(server.dataDir, "jobs", id, "items.jsonl"))).toHaveLength(0);
  }, 90_000);

  it("can be stopped at once while it waits for an unreachable store, and resumed later", async () => {
    await s3.put("lines/a.jsonl", lines(0, 5_000));
    s3.proxy!.set({ kind: "silent" });
    const id = await server.submit("jobs", overLines(["s3://bucket/lines/"]));
    const stopped = performance.now();
    await server.fetch(`/jobs/${id}`, { method: "DELETE" });
    expect((await server.ended("jobs", id)).status).toBe("status_stopped");
    expect(performance.now() - stopped).toBeLessThan(5_000);
    s3.proxy!.set({ kind: "none" });
    writeFileSync(handled, "");
    await server.fetch(`/jobs/${id}/resume`, { method: "POST" });
    expect(await server.ended("jobs", id)).toMatchObject({
      status: "status_succeeded",
      total_batch_count: 701,
    });
    expect(sortedIds()).toEqual(Array.from({ length: 7_003 }, (_, i) => i));
  }, 60_000);
});
