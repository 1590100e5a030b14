/** The rules of a submission's body (docs/contract/submitting.md), over real HTTP. */

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ITEM_DEPTH_MAX } from "../../../src/contracts/limits/submissions.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { schemaErrors } from "../../harness/published-schema.ts";
import { TestServer } from "../../harness/server.ts";

interface Problem {
  status: number;
  code: string;
  message: string;
  errors?: { pointer: string; detail: string }[];
}

describe("a submission", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO), { wait: false });
  });
  afterAll(() => server.stop());

  const submit = async (body: unknown): Promise<Problem> => {
    const response = await server.post("/jobs", body);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    return (await response.json()) as Problem;
  };
  const items = { item_list: { items: [1], batch_size: 1 } };

  it("is refused for an item that is not UTF-8 or is nested too deep", async () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    const body = (list: string) => `{"workers":1,"item_list":{"batch_size":1,"items":[${list}]}}`;
    const deep = await submit(body(`1,${nested(ITEM_DEPTH_MAX + 1)}`));
    expect([deep.status, deep.errors]).toEqual([
      400,
      [{ pointer: "/item_list/items/1", detail: `is nested deeper than ${ITEM_DEPTH_MAX}: make it flatter` }],
    ]);
    const [before, behind] = body('"\u00fc"').split("\u00fc");
    const latin1 = Buffer.concat([Buffer.from(before!), Buffer.from([0xfc]), Buffer.from(behind!)]);
    const refused = await server.fetch("/jobs", { method: "POST", body: latin1 });
    expect([refused.status, ((await refused.json()) as Problem).errors![0]]).toMatchObject([
      400,
      { pointer: "/item_list/items/0", detail: expect.stringContaining("not valid UTF-8") as string },
    ]);
    const taken = await server.post("/jobs", body(nested(ITEM_DEPTH_MAX)));
    const { job_id } = (await taken.json()) as { job_id: string };
    expect((await server.ended("jobs", job_id)).status).toBe("status_succeeded");
  });

  it.each<[string, unknown, string, string]>([
    ["no input", { workers: 1 }, "", "none was given"],
    [
      "two inputs",
      { workers: 1, ...items, delimited_files: { store_paths: ["file:///a"], batch_size: 1 } },
      "",
      "given: item_list, delimited_files",
    ],
    ["null inputs count as absent", { workers: 1, item_list: null }, "", "none was given"],
    ["no workers", items, "/workers", "is required"],
    ["workers 0", { workers: 0, ...items }, "/workers", "at least 1 (got 0)"],
    ["workers as text", { workers: "2", ...items }, "/workers", 'must be an integer (got "2")'],
    ["workers 1.5", { workers: 1.5, ...items }, "/workers", "must be an integer (got 1.5)"],
    ["timeout 0", { workers: 1, timeout: 0, ...items }, "/timeout", "at least 1"],
    ["a timeout as text", { workers: 1, timeout: "60", ...items }, "/timeout", "must be an integer"],
    [
      "an empty dead letter queue",
      { workers: 1, ...items, queue_dead_letter_queue: { arn: "", max_receive_count: 1 } },
      "/queue_dead_letter_queue/arn",
      "must not be empty",
    ],
    [
      "max_receive_count 0",
      { workers: 1, ...items, queue_dead_letter_queue: { arn: "q", max_receive_count: 0 } },
      "/queue_dead_letter_queue/max_receive_count",
      "at least 1",
    ],
    [
      "a dead letter queue without its count",
      { workers: 1, ...items, queue_dead_letter_queue: { arn: "q" } },
      "/queue_dead_letter_queue/max_receive_count",
      "is required",
    ],
    [
      "an invalid dead letter queue",
      { workers: 1, ...items, queue_dead_letter_queue: { arn: "two words", max_receive_count: 1 } },
      "/queue_dead_letter_queue/arn",
      "arn:aws:sqs",
    ],
    [
      "no attempts",
      { workers: 1, ...items, queue_dead_letter_queue: { arn: "q", max_receive_count: 0 } },
      "/queue_dead_letter_queue/max_receive_count",
      "at least 1",
    ],
    [
      "a compression that there is not",
      { workers: 1, ...items, output: { compression: "gzip" } },
      "/output/compression",
      'must be "none" or "zstd"',
    ],
    [
      "a priority that is too high",
      { workers: 1, ...items, priority: 101 },
      "/priority",
      "must be an integer from -100 to 100",
    ],
    [
      "an unknown on_failure",
      { workers: 1, ...items, on_failure: "stop" },
      "/on_failure",
      'must be "fail" or "isolate"',
    ],
    [
      "items that are not a list",
      { workers: 1, item_list: { items: {}, batch_size: 1 } },
      "/item_list/items",
      "must be an array",
    ],
    [
      "paths without batch_size",
      { workers: 1, file_path_lister: { store_paths: ["file:///a"] } },
      "/file_path_lister/batch_size",
      "is required",
    ],
    ["config that is not an object", { workers: 1, config: [], ...items }, "/config", "must be an object"],
    [
      "no items",
      { workers: 1, item_list: { items: [], batch_size: 1 } },
      "/item_list/items",
      "at least 1 element",
    ],
    [
      "batch_size 0",
      { workers: 1, item_list: { items: [1], batch_size: 0 } },
      "/item_list/batch_size",
      "at least 1",
    ],
    ["an unknown key", { workers: 1, ...items, time_out: 4 }, "/time_out", 'did you mean "timeout"?'],
    [
      "an unknown key inside",
      { workers: 1, item_list: { items: [1], batchsize: 1, batch_size: 1 } },
      "/item_list/batchsize",
      'did you mean "batch_size"?',
    ],
    [
      "no store_paths",
      { workers: 1, delimited_files: { store_paths: [], batch_size: 1 } },
      "/delimited_files/store_paths",
      "at least 1 element",
    ],
    [
      "a path without scheme",
      { workers: 1, delimited_files: { store_paths: ["/tmp/x"], batch_size: 1 } },
      "/delimited_files/store_paths/0",
      "file:///absolute/path",
    ],
    [
      "an unknown scheme",
      { workers: 1, delimited_files: { store_paths: ["ftp://x/y"], batch_size: 1 } },
      "/delimited_files/store_paths/0",
      "legal: s3://, gs://, az://, file://",
    ],
    [
      "an invalid bucket",
      { workers: 1, delimited_files: { store_paths: ["gs://a b/y"], batch_size: 1 } },
      "/delimited_files/store_paths/0",
      "is not the name of a bucket",
    ],
    [
      "both names of the paths",
      {
        workers: 1,
        file_path_lister: { s3_paths: ["file:///a"], store_paths: ["file:///a"], batch_size: 1 },
      },
      "/file_path_lister/s3_paths",
      "an older name of store_paths, and both are given; keep store_paths",
    ],
    [
      "both names of the dead letter queue",
      {
        workers: 1,
        ...items,
        sqs_dead_letter_queue: { arn: "q", max_receive_count: 1 },
        queue_dead_letter_queue: { arn: "q", max_receive_count: 1 },
      },
      "/sqs_dead_letter_queue",
      "keep queue_dead_letter_queue",
    ],
    [
      "an invalid path under its older name",
      { workers: 1, delimited_files: { s3_paths: ["file:///a", "/tmp/x"], batch_size: 1 } },
      "/delimited_files/s3_paths/1",
      "file:///absolute/path",
    ],
    [
      "an invalid dead letter queue under its older name",
      { workers: 1, ...items, sqs_dead_letter_queue: { arn: "two words", max_receive_count: 1 } },
      "/sqs_dead_letter_queue/arn",
      "arn:aws:sqs",
    ],
    ["an array", [], "the body", ""],
  ])("with %s gets 400 with the field", async (_, body, pointer, detail) => {
    const problem = await submit(body);
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    // A client that validates against the published schema gets the error too.
    expect(schemaErrors(body)).not.toEqual([]);
    const found = problem.errors!.find((error) => error.pointer === pointer.replace("the body", ""));
    expect(found?.detail, JSON.stringify(problem.errors)).toContain(detail);
  });

  it("gets all errors at once", async () => {
    const problem = await submit({ workers: 0, timeout: "x", nonsense: 1 });
    expect(problem.errors!.map((error) => error.pointer).sort()).toEqual([
      "",
      "/nonsense",
      "/timeout",
      "/workers",
    ]);
  });

  it("gets the error for an unknown key before that for the missing key", async () => {
    const wrong = { paths: ["file:///a"], batch_size: 1 };
    const { message, errors } = await submit({ workers: 1, file_path_lister: wrong });
    expect(errors!.map(({ pointer }) => pointer)).toEqual([
      "/file_path_lister/paths",
      "/file_path_lister/store_paths",
    ]);
    expect(message).toContain(
      '/file_path_lister/paths: key "paths" is not supported; legal keys: store_paths,',
    );
    const { errors: others } = await submit({ worker: 1, item_list: { item: [1], batch_size: 1 } });
    expect(others!.map(({ pointer }) => pointer)).toEqual([
      "/worker",
      "/workers",
      "/item_list/item",
      "/item_list/items",
    ]);
  });

  it("may have the names of Cortex, and the response then has sqs_url too", async () => {
    const path = server.writeInput("older.jsonl", '{"a":1}\n{"a":2}\n');
    const older = {
      workers: 1,
      timeout: null,
      config: null,
      delimited_files: { s3_paths: [path], includes: null, batch_size: 1 },
      sqs_dead_letter_queue: { arn: "letters", max_receive_count: 2 },
    };
    const record = (await (await server.post("/jobs", older)).json()) as Record<string, unknown>;
    const job_id = record.job_id as string;
    expect(record).toMatchObject({
      queue_dead_letter_queue: { arn: "letters", max_receive_count: 2 },
      queue_url: `${server.baseUrl}/-/queues/${job_id}`,
      sqs_url: `${server.baseUrl}/-/queues/${job_id}`,
    });
    expect(record).not.toHaveProperty("sqs_dead_letter_queue");
    const ended = await server.ended("jobs", job_id);
    expect(ended).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: 2 },
      queue_dead_letter_queue: { arn: "letters", max_receive_count: 2 },
      sqs_url: record.queue_url,
    });
    const { out } = server.cli(["job", "logs", "jobs", job_id]);
    expect(out.match(/the submission has .*/g)).toEqual([
      "the submission has s3_paths, which is called store_paths here; both are accepted",
      "the submission has sqs_dead_letter_queue, which is called queue_dead_letter_queue here; both are accepted",
    ]);
    const preview = await server.post("/jobs?dryRun=true", older);
    expect(await preview.json()).toMatchObject({ files: [path] });
    const newer = await server.post("/jobs", { workers: 1, ...items });
    expect(await newer.json()).not.toHaveProperty("sqs_url");
  });

  it("that is not JSON gets 400", async () => {
    for (const body of ["", "{", '{"a":1}x'])
      expect(await submit(body)).toMatchObject({ status: 400, code: "malformed_json" });
  });

  it("gets an error that names the item or the batch that is too large", async () => {
    const large = (bytes: number) => "x".repeat(bytes);
    const alone = await submit({ workers: 1, item_list: { items: [1, large(262_144 - 4)], batch_size: 1 } });
    expect(alone.errors).toEqual([
      { pointer: "/item_list/items/1", detail: expect.stringContaining("has 262144 bytes") },
    ]);
    const together = await submit({
      workers: 1,
      item_list: { items: [1, 2, large(200_000), large(100_000)], batch_size: 2 },
    });
    expect(together.errors).toEqual([
      { pointer: "/item_list/items/2", detail: expect.stringContaining("items 2 to 3 make a batch of") },
    ]);
    expect(
      (await server.post("/jobs", { workers: 1, item_list: { items: [large(262_143 - 4)], batch_size: 1 } }))
        .status,
    ).toBe(200);
  });

  it("of 10 MiB is refused before all of it is sent; one byte less is accepted", async () => {
    const body = (bytes: number) => {
      const shell = JSON.stringify({ workers: 1, item_list: { items: [1], batch_size: 1 } });
      return shell + " ".repeat(bytes - shell.length);
    };
    expect((await server.post("/jobs", body(10_485_759))).status).toBe(200);
    const status = await new Promise((resolve, reject) => {
      // Announces nothing and never ends: the answer has to come while the body is on its way.
      const sending = request(
        `${server.baseUrl}/jobs`,
        { method: "POST", headers: { "content-type": "application/json", "transfer-encoding": "chunked" } },
        (answer) => resolve(answer.statusCode),
      );
      sending.on("error", reject);
      const chunk = Buffer.alloc(1 << 20, " ");
      for (let i = 0; i < 12; i++) sending.write(chunk);
    });
    expect(status).toBe(413);
  });

  it("reads only under the allowed roots, links included", async () => {
    writeFileSync(join(server.dir, "secret.jsonl"), '{"a":1}\n');
    mkdirSync(join(server.inputs, "sub"));
    symlinkSync(join(server.dir, "secret.jsonl"), join(server.inputs, "link.jsonl"));
    symlinkSync(server.dir, join(server.inputs, "sub", "out"));
    const of = (path: string) =>
      submit({ workers: 1, delimited_files: { store_paths: [path], batch_size: 1 } });
    expect(await of(`file://${server.dir}/secret.jsonl`)).toMatchObject({
      code: "path_not_allowed",
      message: expect.stringContaining("--allow-local-root"),
    });
    expect(await of(`file://${server.inputs}/../secret.jsonl`)).toMatchObject({ code: "path_not_allowed" });
    expect(await of(`file://${server.inputs}/link.jsonl`)).toMatchObject({ code: "no_files_found" });
    expect(await of(`file://${server.inputs}/sub/out/secret.jsonl`)).toMatchObject({ status: 400 });
    expect(await of(`file://${server.inputs}/nothing`)).toMatchObject({ code: "no_files_found" });
  });

  it("to a missing API, or to one that is not a batch API, gets an error", async () => {
    expect(await (await server.post("/nobody", {})).json()).toMatchObject({
      status: 404,
      code: "api_not_found",
    });
    expect((await server.fetch("/jobs", { method: "PUT" })).status).toBe(405);
  });

  it("is refused from a web page of another origin", async () => {
    const foreign = await server.post("/jobs", { workers: 1, ...items }, { origin: "https://evil.example" });
    expect(await foreign.json()).toMatchObject({ status: 403, code: "origin_not_allowed" });
    expect((await server.post("/jobs", { workers: 1, ...items }, { origin: server.baseUrl })).status).toBe(
      200,
    );
  });
});
