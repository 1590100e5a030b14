import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const lines = (count: number, of = (i: number) => `{"id":${i}}`) =>
  `${Array.from({ length: count }, (_, i) => of(i)).join("\n")}\n`;

describe("a job", () => {
  const server = new TestServer();
  let log: string;
  let n = 0;
  beforeAll(async () => {
    await server.start();
    server.deploy(project(OBEDIENT, { predictorFields: ", config: {deep: {a: 1, b: 2}, list: [1]}" }), {
      wait: false,
    });
  });
  afterAll(() => server.stop());

  const withLog = () => {
    log = join(server.dir, `log-${n++}`);
    writeFileSync(log, "");
    return { log };
  };
  const logged = () => readFileSync(log, "utf8").trim().split("\n");

  it("over inline items succeeds, with every field of its record", async () => {
    const response = await server.post("/jobs", {
      workers: 2,
      config: withLog(),
      item_list: { items: [1, "two", null, { id: 4 }, 5], batch_size: 2 },
    });
    expect(response.status).toBe(200);
    const record = (await response.json()) as Record<string, unknown>;
    expect(response.headers.get("location")).toBe(`${server.baseUrl}/jobs/${record.job_id}`);
    expect(record.job_id).toMatch(/^[0-9a-hjkmnp-tv-z]{26}$/);
    expect(record.created_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    expect(record).toMatchObject({
      api_name: "jobs",
      workers: 2,
      config: { log },
      queue_url: `${server.baseUrl}/-/queues/${record.job_id}`,
    });
    expect(record).not.toHaveProperty("timeout");
    expect(record).not.toHaveProperty("queue_dead_letter_queue");
    const job = await server.ended("jobs", record.job_id as string);
    expect(job).toMatchObject({
      status: "status_succeeded",
      total_batch_count: 3,
      batches_in_queue: 0,
      batch_metrics: { succeeded: 3, failed: 0 },
    });
    expect(job.batch_metrics.avg_time_per_batch).toBeGreaterThan(0);
    expect(job).not.toHaveProperty("worker_counts");
    expect(logged().sort()).toEqual(["1", "4", "5", "None", "two"]);
  });

  it("is read by path and by jobID, which must agree", async () => {
    const id = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    const byPath = (await (await server.fetch(`/jobs/${id}`)).json()) as {
      endpoint: string;
      api_spec: string;
    };
    expect(byPath.endpoint).toBe(`${server.baseUrl}/jobs/${id}`);
    expect(decode(Buffer.from(byPath.api_spec, "base64"))).toMatchObject({
      name: "jobs",
      kind: "BatchAPI",
      predictor: { path: "predictor.py" },
    });
    expect((await server.fetch(`/jobs?jobID=${id}`)).status).toBe(200);
    expect((await server.fetch(`/jobs/${id}?jobID=${id}`)).status).toBe(200);
    expect((await server.fetch(`/jobs/${id}?jobID=01m7yh8kp1sb34pka3sxpajz6p`)).status).toBe(400);
    expect((await server.fetch("/jobs?jobID=")).status).toBe(400);
    expect((await server.fetch("/jobs", { method: "DELETE" })).status).toBe(400);
    for (const unknown of ["01m7yh8kp1sb34pka3sxpajz6p", "nonsense"]) {
      expect((await server.fetch(`/jobs/${unknown}`)).status).toBe(404);
      expect((await server.fetch(`/jobs/${unknown}`, { method: "DELETE" })).status).toBe(404);
    }
    await server.ended("jobs", id);
  });

  it("over files takes every line once, in batches that span files", async () => {
    server.writeInput("a-1.jsonl", `\ufeff${lines(7)}`);
    server.writeInput("a-2.jsonl", lines(6, (i) => `  {"id": ${i + 7}}  \r`).replace(/\n$/, ""));
    server.writeInput("a-3.jsonl", `\n\n{"id":13}\n   \n{"id":14}\n`);
    const path = server.writeInput(
      "b.jsonl",
      lines(5, (i) => `{"id":${i + 15}}`),
    );
    const id = await server.submit("jobs", {
      workers: 2,
      config: withLog(),
      delimited_files: {
        store_paths: [path.replace("b.jsonl", "a-"), path, path.replace(".jsonl", "")],
        batch_size: 4,
      },
    });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_succeeded", total_batch_count: 5 });
    expect(
      logged()
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it("ends with status_enqueue_failed at a line that is not an object, naming file and line, before any predict()", async () => {
    const path = server.writeInput("bad.jsonl", `${lines(2500)}[1]\n`);
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", {
        workers: 1,
        config: withLog(),
        delimited_files: { store_paths: [path], batch_size: 1 },
      }),
    );
    expect(job.status).toBe("status_enqueue_failed");
    expect(job.reason!.message).toContain("bad.jsonl: line 2501 does not begin with {");
    expect(readFileSync(log, "utf8")).toBe("");
  });

  it.each([
    [262_143, "status_succeeded"],
    [262_144, "status_enqueue_failed"],
  ])("accepts a batch of %i bytes as %s, without counting white space", async (bytes, status) => {
    const text = "x".repeat(bytes - '[{"id":""}]'.length);
    const path = server.writeInput(`size-${bytes}.jsonl`, `  { "id" :\t"${text}" }  \n`);
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 1, delimited_files: { store_paths: [path], batch_size: 1 } }),
    );
    expect(job.status).toBe(status);
  });

  it("ends with status_enqueue_failed if all files are empty", async () => {
    const path = server.writeInput("empty.jsonl", "\n\n");
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 1, delimited_files: { store_paths: [path], batch_size: 1 } }),
    );
    expect(job).toMatchObject({ status: "status_enqueue_failed", reason: { code: "no_data" } });
  });

  it("continues after batches that raise, counts them, and keeps the traceback", async () => {
    const items = Array.from({ length: 20 }, (_, id) => ({ id, do: id % 5 === 0 ? "raise" : "return" }));
    const id = await server.submit("jobs", { workers: 2, item_list: { items, batch_size: 1 } });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 16, failed: 4 },
      batches_in_queue: 0,
    });
    expect(server.cli(["job", "logs", "jobs", id]).out).toContain("ValueError: no good: 15");
  });

  it("charges the death of a worker only to its current batch", async () => {
    const items = Array.from({ length: 300 }, (_, id) => ({
      id,
      do: [50, 150, 151].includes(id) ? "kill" : "return",
    }));
    const id = await server.submit("jobs", {
      workers: 2,
      config: withLog(),
      item_list: { items, batch_size: 1 },
    });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({
      status: "status_worker_error",
      batch_metrics: { succeeded: 297, failed: 3 },
    });
    expect(new Set(logged()).size).toBe(300);
    expect(job.reason!.message).toContain("3 of 300");
  });

  it("ends early when ten batches in a row kill their worker", async () => {
    const items = Array.from({ length: 40 }, (_, id) => ({ id, do: "segfault" }));
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } }),
    );
    expect(job).toMatchObject({
      status: "status_worker_error",
      batch_metrics: { succeeded: 0, failed: 10 },
      reason: { code: "workers_keep_dying" },
    });
  });

  it("releases batches that wait behind a slow one", async () => {
    const path = join(server.dir, "slow-batch-may-end");
    const items = [{ do: "await", path }, ...Array.from({ length: 400 }, (_, id) => ({ id }))];
    const id = await server.submit("jobs", { workers: 2, item_list: { items, batch_size: 1 } });
    const succeeded = async () => (await server.job("jobs", id)).batch_metrics.succeeded;
    await eventually("all others are done while it goes on", async () => (await succeeded()) === 400);
    writeFileSync(path, "");
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
  });

  it("is stopped once, whatever a late worker reports", async () => {
    const id = await server.submit("jobs", {
      workers: 2,
      item_list: { items: Array.from({ length: 50 }, () => ({ do: "sleep", seconds: 0.5 })), batch_size: 1 },
    });
    await eventually(
      "the job is running",
      async () => (await server.job("jobs", id)).worker_counts?.running === 2,
    );
    for (const _ of [1, 2]) {
      const response = await server.fetch(`/jobs/${id}`, { method: "DELETE" });
      expect([response.status, await response.json()]).toEqual([200, { message: `stopped job ${id}` }]);
    }
    const stopped = await server.ended("jobs", id);
    expect(stopped).toMatchObject({
      status: "status_stopped",
      batches_in_queue: 0,
      total_batch_count: 50,
    });
    await eventually("its workers are gone", () => server.workers().length === 1);
    expect(await server.job("jobs", id)).toEqual(stopped);
  });

  it("is stopped at once, although its current batch has ten seconds to end", async () => {
    const touch = join(server.dir, "begun");
    const items = [{ do: "sleep", seconds: 3, touch }];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    await eventually("it is running", () => existsSync(touch));
    const worker = server.workers().length;
    expect((await server.fetch(`/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
    expect((await server.job("jobs", id)).status).toBe("status_stopped");
    expect(server.workers()).toHaveLength(worker);
    await eventually("the worker has left", () => server.workers().length === worker - 1, 12_000);
  });

  it("cannot be stopped after it ended", async () => {
    const id = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    await server.ended("jobs", id);
    const response = await server.fetch(`/jobs?jobID=${id}`, { method: "DELETE" });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      409,
      "wrong_state",
    ]);
  });

  it("times out counting from its submission", async () => {
    const id = await server.submit("jobs", {
      workers: 1,
      timeout: 1,
      item_list: { items: Array.from({ length: 50 }, () => ({ do: "sleep", seconds: 0.2 })), batch_size: 1 },
    });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_timed_out", reason: { code: "timed_out" } });
    expect(Date.parse(job.end_time!) - Date.parse(job.start_time!)).toBeLessThan(2_200);
  });

  it("merges its config over the API's, recursively, with every digit", async () => {
    const result = join(server.dir, "config.json");
    server.deploy(
      project(
        `import json\nclass PythonPredictor:\n  def __init__(self, config): self.config = config\n  def predict(self, payload): json.dump(self.config, open(${JSON.stringify(result)}, "w"))\n`,
        { predictorFields: ", config: {deep: {a: 1, b: 2}, list: [1], big: 12345678901234567890}" },
      ),
      { wait: false },
    );
    const body = `{"workers":1,"config":{"deep":{"b":3,"c":9007199254740993},"list":[2,3]},"item_list":{"items":[1],"batch_size":1}}`;
    const answer = await (await server.post("/jobs", body)).text();
    expect(answer).toContain('"config":{"deep":{"b":3,"c":9007199254740993},"list":[2,3]}');
    await server.ended("jobs", (JSON.parse(answer) as { job_id: string }).job_id);
    expect(readFileSync(result, "utf8")).toBe(
      '{"deep": {"a": 1, "b": 3, "c": 9007199254740993}, "list": [2, 3], "big": 12345678901234567890}',
    );
  });

  it.each([
    [
      "__init__ raises",
      "class PythonPredictor:\n  def __init__(self, config): raise KeyError('model')\n  def predict(self, payload): pass\n",
      "set_up_failed",
      "KeyError: 'model'",
    ],
    [
      "an import fails",
      "import not_there\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): pass\n",
      "set_up_failed",
      "No module named 'not_there'",
    ],
    [
      "the process exits in __init__",
      "import os\nclass PythonPredictor:\n  def __init__(self, config): os._exit(9)\n  def predict(self, payload): pass\n",
      "set_up_failed",
      "exited with code 9",
    ],
    [
      "on_job_complete raises",
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): pass\n  def on_job_complete(self): raise OSError('disk')\n",
      "on_job_complete_failed",
      "OSError: disk",
    ],
  ])("ends with status_worker_error if %s", async (_, predictor, code, message) => {
    server.deploy(project(predictor), { wait: false });
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 2, item_list: { items: [1, 2], batch_size: 1 } }),
    );
    expect(job).toMatchObject({ status: "status_worker_error", reason: { code } });
    expect(job.reason!.message).toContain(message);
  });

  it("runs on_job_complete once, after every batch", async () => {
    const log = join(server.dir, "order");
    const append = `open(${JSON.stringify(log)}, "a").write`;
    server.deploy(
      project(
        `class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): ${append}("batch\\n")\n  def on_job_complete(self): ${append}("complete\\n")\n`,
      ),
      { wait: false },
    );
    await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 3, item_list: { items: [1, 2, 3, 4, 5, 6], batch_size: 1 } }),
    );
    expect(readFileSync(log, "utf8")).toBe(`${"batch\n".repeat(6)}complete\n`);
  });

  it("gives each method the job_spec, with the job's start and the number of its batches", async () => {
    const seen = join(server.dir, "job-spec");
    const note = (line: string) => `open(${JSON.stringify(seen)}, "a").write(json.dumps(${line}) + "\\n")`;
    server.deploy(
      project(
        `import json\nclass PythonPredictor:\n  def __init__(self, config, job_spec): self.spec = job_spec; ${note('["init", job_spec]')}\n` +
          `  def predict(self, payload, job_spec): ${note('["predict", job_spec]')}\n` +
          `  def on_job_complete(self): ${note('["complete", self.spec]')}\n`,
      ),
      { wait: false },
    );
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [1, 2, 3], batch_size: 1 },
      config: { mine: 1 },
    });
    const { start_time } = await server.ended("jobs", id);
    const spec = { job_id: id, workers: 1, config: { mine: 1 }, start_time, round: 1 };
    const lines = readFileSync(seen, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, { total_batch_count: number | null } | null])
      // The same file is a real-time API here, without a job.
      .flatMap(([method, given]) => (given === null ? [] : [{ method, given }]));
    expect(lines.map(({ method }) => method)).toEqual(["init", "predict", "predict", "predict", "complete"]);
    for (const { given } of lines) expect(given).toMatchObject(spec);
    expect([null, 3]).toContain(lines[0]!.given.total_batch_count);
    expect(lines.slice(1).map(({ given }) => given.total_batch_count)).toEqual([3, 3, 3, 3]);
  });

  it("fails the attempt of a batch that exceeds predictor.timeout, and replaces the worker", async () => {
    server.deploy(project(OBEDIENT, { predictorFields: ", timeout: 2s" }), { wait: false });
    const items = [
      { id: 0 },
      { id: 1, do: "hold", seconds: 20 },
      ...Array.from({ length: 30 }, (_, i) => ({ id: i + 2 })),
    ];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 31, failed: 1 },
    });
  });

  it("lets a batch hold the interpreter without predictor.timeout, and leases it once", async () => {
    server.deploy(project(OBEDIENT), { wait: false });
    const items = [
      { id: "held", do: "hold", seconds: 20 },
      ...Array.from({ length: 30 }, (_, id) => ({ id })),
    ];
    const job = await server.ended(
      "jobs",
      await server.submit("jobs", { workers: 2, config: withLog(), item_list: { items, batch_size: 1 } }),
    );
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 31, failed: 0 } });
    expect(logged().filter((id) => id === "held")).toHaveLength(1);
  });

  it("is listed, newest first, page by page", async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = (await (
        await server.fetch(`/jobs?limit=3${cursor === "" ? "" : `&cursor=${cursor}`}`)
      ).json()) as { jobs: { job_id: string }[]; next_cursor: string | null };
      seen.push(...page.jobs.map((job) => job.job_id));
      cursor = page.next_cursor;
    }
    expect(seen.length).toBeGreaterThan(20);
    expect(seen).toEqual([...seen].sort().reverse());
    expect((await server.fetch("/jobs?limit=0")).status).toBe(400);
  });

  it("is stopped when its API is deleted; a worker's environment shows no key", async () => {
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: Array.from({ length: 50 }, () => ({ do: "sleep", seconds: 0.5 })), batch_size: 1 },
    });
    expect(server.cli(["delete", "jobs"])).toMatchObject({ code: 0, out: "deleting jobs\n" });
    await eventually("its workers are gone", () => server.workers().length === 1, 15_000);
    expect((await server.fetch(`/jobs/${id}`)).status).toBe(404);
    // Jobs belong to a name, so they are there again.
    server.deploy(project(OBEDIENT), { wait: false });
    const { status, end_time } = await server.ended("jobs", id);
    expect({ status, end_time }).toEqual({ status: "status_stopped", end_time: expect.any(String) });
  });
});
