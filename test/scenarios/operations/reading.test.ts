/** Reading jobs: lists, failures, events (docs/contract/jobs.md), and submitting with a key, over real HTTP. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import type { JobView } from "../../harness/views.ts";

const server = new TestServer({ QUERN_CPUS: "1" });
beforeAll(async () => {
  await server.start();
  server.deploy(project(OBEDIENT, { batch: "  compute: {cpu: 0.5}\n" }), { wait: false });
});
afterAll(() => server.stop());

const items = (...list: unknown[]) => ({ workers: 1, item_list: { items: list, batch_size: 1 } });
const read = async (path: string) => {
  const response = await server.fetch(path);
  return { status: response.status, body: (await response.json()) as Record<string, never> };
};

describe("a record", () => {
  it("has the fields of the contract, without those that were not given", async () => {
    const before = Date.now();
    const answer = await server.post("/jobs", { ...items(1), config: { big: 1 } });
    const record = (await answer.json()) as Record<string, unknown>;
    const { job_id } = record;
    expect(record).toEqual({
      job_id: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]{26}$/),
      api_name: "jobs",
      api_id: expect.stringMatching(/^[0-9a-f]+$/),
      workers: 1,
      queue_url: `${server.baseUrl}/-/queues/${String(job_id)}`,
      created_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/),
      config: { big: 1 },
    });
    expect(Math.abs(Date.parse(String(record.created_time)) - before)).toBeLessThan(5_000);
    expect(answer.headers.get("location")).toBe(`${server.baseUrl}/jobs/${String(job_id)}`);
    const full = (await (await server.post("/jobs", { ...items(1), timeout: 60 })).json()) as Record<
      string,
      unknown
    >;
    expect(full).toMatchObject({ timeout: 60, config: {} });
  });

  it("of a finished job has every status field, in both forms of the address", async () => {
    const id = await server.submit("jobs", items(1, { do: "raise" }));
    await server.ended("jobs", id);
    const { body } = await read(`/jobs/${id}`);
    expect((await read(`/jobs?jobID=${id}`)).body).toEqual(body);
    expect(body).toEqual({
      endpoint: `${server.baseUrl}/jobs/${id}`,
      api_spec: expect.any(String),
      job_status: expect.objectContaining({
        job_id: id,
        status: "status_completed_with_failures",
        batches_in_queue: 0,
        total_batch_count: 2,
        batch_metrics: { succeeded: 1, failed: 1, avg_time_per_batch: expect.any(Number) },
        start_time: expect.any(String),
        end_time: expect.any(String),
        reason: {
          code: "batches_failed",
          message: expect.any(String),
          hint: expect.stringContaining("quern job failures"),
        },
      }),
    });
    expect(body.job_status).not.toHaveProperty("worker_counts");
    const spec = decode(Buffer.from(String(body.api_spec), "base64")) as Record<string, unknown>;
    expect(spec).toMatchObject({ name: "jobs", kind: "BatchAPI", compute: { cpu: "0.5" } });
  });

  it("of a job whose workers wait says for what they wait, how much is free, and who has the rest", async () => {
    await eventually(
      "the real-time API has its part",
      async () => (await server.post("/echo", 1)).status === 200,
    );
    const body = `{"workers":3,"item_list":{"items":${JSON.stringify(Array(3).fill({ do: "sleep", seconds: 60 }))},"batch_size":1},"config":{"one":1.0}}`;
    const { job_id: id } = (await (await server.post("/jobs", body)).json()) as { job_id: string };
    let status: { waiting?: string; worker_counts?: Record<string, number> } = {};
    await eventually("one works", async () => {
      status = (await read(`/jobs/${id}`)).body.job_status as never as typeof status;
      return status.worker_counts?.running === 1;
    });
    expect(status.waiting).toMatch(/^2 workers wait for compute: each takes 0.5 CPU; .* are free; it starts/);
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const answer = await server.fetch(`/jobs/${id}`, { headers: { authorization: `Bearer ${token}` } });
    status = ((await answer.json()) as { job_status: typeof status }).job_status;
    expect(status.waiting).toMatch(
      /^2 workers wait for compute: each takes 0.5 CPU; 0.3 CPU and .* of 1 CPU and .* are free; reserved by /,
    );
    expect(status.waiting).toContain(`job ${id} of jobs (0.5 CPU)`);
    expect(status.waiting).toContain("API echo (0.2 CPU)");
    const shown = server.cli(["get", "jobs", id]).out;
    expect(shown).toContain(`\nwaiting: ${status.waiting}\n`);
    expect(shown).toMatch(
      /\njob configuration\n\{\n {2}"job_id": "\w+",\n {2}"api_name": "jobs",\n {2}"workers": 3,\n/,
    );
    expect(shown).toContain('"config": {\n    "one": 1.0\n  },');
    expect((await server.fetch(`/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_stopped");
    expect((await read(`/jobs/${id}`)).body.job_status).not.toHaveProperty("waiting");
  });

  it("and the API's configuration keep every number as it was written, down to Python and back", async () => {
    const numbers = '{"big":12345678901234567890,"huge":123456789012345678901234567890,"one":1.0,"exp":1e2}';
    const seen = join(server.inputs, "numbers");
    const code = `class PythonPredictor:\n  def __init__(self, config, job_spec):\n    with open(${JSON.stringify(seen)}, "w") as file: file.write(repr([config, job_spec["config"]]))\n  def predict(self, payload): pass\n`;
    const yaml = `- name: numbers\n  kind: BatchAPI\n  predictor: {path: p.py, config: {of_api: ${numbers}}}\n`;
    server.deploy({ "quern.yaml": yaml, "p.py": code }, { wait: false });
    const body = `{"workers":1,"item_list":{"items":[1],"batch_size":1},"config":{"of_job":${numbers}}}`;
    const record = await (await server.post("/numbers", body)).text();
    expect(record).toContain(`"config":{"of_job":${numbers}}`);
    const id = (JSON.parse(record) as { job_id: string }).job_id;
    expect((await server.ended("numbers", id)).status).toBe("status_succeeded");
    const inPython =
      "{'big': 12345678901234567890, 'huge': 123456789012345678901234567890, 'one': 1.0, 'exp': 100.0}";
    expect(readFileSync(seen, "utf8")).toBe(
      `[{'of_api': ${inPython}, 'of_job': ${inPython}}, {'of_job': ${inPython}}]`,
    );
    const answer = await (await server.fetch(`/numbers/${id}`)).text();
    expect(answer).toContain(`"config":{"of_job":${numbers}}`);
    const { api_spec } = JSON.parse(answer) as { api_spec: string };
    const packed = Buffer.from(api_spec, "base64");
    const spec = decode(packed, { useBigInt64: true }) as { predictor: { config: { of_api: unknown } } };
    // Integers beyond 64 bits are strings of digits.
    expect(spec.predictor.config.of_api).toEqual({
      ...{ big: 12345678901234567890n, huge: "123456789012345678901234567890" },
      ...{ one: 1, exp: 100 },
    });
    const one = Buffer.from([0xa3, ...Buffer.from("one"), 0xcb, ...Buffer.from("3ff0000000000000", "hex")]);
    expect(packed.includes(one)).toBe(true);
    const shown = server.cli(["get", "numbers", "-o", "json"]).out;
    expect(shown).toContain('"big": 12345678901234567890,');
    expect(shown).toContain('"one": 1.0,');
    expect(server.cli(["get", "-o", "json"]).out).toContain('"huge": 123456789012345678901234567890,');
    expect(server.cli(["describe", "numbers"]).out).toMatch(
      /^ +big: 12345678901234567890\n.*\n +one: 1\.0$/m,
    );
    server.cli(["delete", "numbers", "-y"]);
  });
});

describe("the list of jobs", () => {
  const other = new TestServer();
  const ids: string[] = [];
  beforeAll(async () => {
    await other.start();
    other.deploy(project(OBEDIENT), { wait: false });
    for (let i = 0; i < 5; i++) ids.unshift(await other.submit("jobs", items(i === 2 ? { do: "raise" } : i)));
    for (const id of ids) await other.ended("jobs", id);
  });
  afterAll(() => other.stop());
  const list = async (query: string) => {
    const response = await other.fetch(`/jobs?${query}`);
    return (await response.json()) as { jobs: JobView[]; next_cursor: string | null; message: string };
  };

  it("is newest first, page by page", async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await list(`limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      seen.push(...page.jobs.map((job) => job.job_id));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(ids);
    expect((await list("limit=5")).next_cursor).toBeNull();
  });

  it("has no config, which only the job itself shows", async () => {
    const { jobs } = await list("limit=5");
    expect(jobs.filter((job) => "config" in job)).toEqual([]);
    expect(await other.job("jobs", ids[0]!)).toMatchObject({ config: {} });
  });

  it("can be filtered by status", async () => {
    const failed = await list("status=status_completed_with_failures");
    expect(failed.jobs.map((job) => job.job_id)).toEqual([ids[2]]);
    expect((await list("status=status_running")).jobs).toEqual([]);
  });

  it.each([
    ["limit=0", "1 to 500"],
    ["limit=501", "1 to 500"],
    ["limit=x", "1 to 500"],
    ["status=done", "must be one of status_unknown, "],
    ["cursor=zzz", "next_cursor"],
  ])("refuses %s", async (query, words) => {
    const response = await other.fetch(`/jobs?${query}`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { message: string }).message).toContain(words);
  });
});

describe("the failures of a job", () => {
  interface Page {
    failures: {
      batch_id: string;
      batch_index: number;
      receive_count: number;
      error: object;
      payload: unknown;
    }[];
    next_cursor: string | null;
  }
  it("have the batch's items, as they were sent, its error and its attempts, page by page", async () => {
    const lines = Array.from({ length: 10 }, (_, id) =>
      id % 3 === 0 ? `{"do":"raise", "id":${id}, "big":12345678901234567890}\n` : `{"id":${id}}\n`,
    );
    const path = server.writeInput("failing.jsonl", lines.join(""));
    const id = await server.submit("jobs", {
      workers: 1,
      delimited_files: { store_paths: [path], batch_size: 1 },
    });
    await server.ended("jobs", id);
    const first = await server.fetch(`/jobs/${id}/failures?limit=3`);
    const text = await first.text();
    expect(text).toContain('"payload":[{"do":"raise", "id":0, "big":12345678901234567890}]');
    const page = JSON.parse(text) as Page;
    expect(page.failures.map((failure) => failure.batch_index)).toEqual([0, 3, 6]);
    expect(page.failures[1]).toMatchObject({
      batch_id: `${id}-3`,
      ...{ round: 1, receive_count: 1 },
      error: {
        type: "ValueError",
        message: "no good: 3",
        traceback: expect.stringContaining('raise ValueError("no good'),
      },
      payload: [{ do: "raise", id: 3 }],
    });
    const rest = (await read(`/jobs/${id}/failures?limit=3&cursor=${page.next_cursor}`))
      .body as unknown as Page;
    expect(rest.failures.map((failure) => failure.batch_index)).toEqual([9]);
    expect(rest.next_cursor).toBeNull();
    expect((await read(`/jobs/${id}/failures?cursor=x`)).status).toBe(400);

    writeFileSync(join(server.inputs, "failing.jsonl"), "{}\n");
    const changed = (await read(`/jobs/${id}/failures?limit=1`)).body as unknown as Page;
    expect(changed.failures[0]).toMatchObject({
      payload: null,
      payload_error: expect.stringContaining("was changed after it was enqueued"),
    });
  });

  it("are empty while no batch has failed, and a missing job gets 404", async () => {
    const id = await server.submit("jobs", items(1));
    await server.ended("jobs", id);
    expect((await read(`/jobs/${id}/failures`)).body).toEqual({ failures: [], next_cursor: null });
    for (const part of ["failures", "events", "logs"]) {
      expect((await read(`/jobs/${"0".repeat(26)}/${part}`)).body).toMatchObject({ code: "job_not_found" });
      const other = await server.fetch(`/jobs/${id}/${part}`, { method: "POST" });
      expect([other.status, other.headers.get("allow")]).toEqual([405, "GET"]);
    }
  });
});

describe("the events of a job", () => {
  it("are its status on each change and once a second, then an end", async () => {
    const id = await server.submit("jobs", items({ do: "sleep", seconds: 2.2 }));
    // A request may have any key if the server needs none.
    const headers = { authorization: "Bearer whatever" };
    const [response, logs] = await Promise.all([
      server.fetch(`/jobs/${id}/events`, { headers }),
      server.fetch(`/jobs/${id}/logs?follow=true`, { headers }),
    ]);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const isWhole = logs.text().then(() => true);
    const events = (await response.text()).trim().split("\n\n");
    expect([events.pop(), await isWhole]).toEqual(["event: end\ndata: {}", true]);
    const statuses = events.map((event) => {
      expect(event).toMatch(/^event: status\ndata: \{.*\}$/);
      return (JSON.parse(event.slice(event.indexOf("{"))) as JobView).status;
    });
    expect(statuses.at(-1)).toBe("status_succeeded");
    expect(statuses.filter((status) => status === "status_running").length).toBeGreaterThanOrEqual(2);
    const again = await (await server.fetch(`/jobs/${id}/events`)).text();
    expect(again.split("\n\n").filter(Boolean)).toHaveLength(2);
  });
});

describe("an Idempotency-Key", () => {
  const submit = (body: unknown, key: string) => server.post("/jobs", body, { "idempotency-key": key });

  it("returns the first response again, and makes no second job", async () => {
    const first = await submit(items(1, 2), "key-1");
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const record = await first.text();
    const again = await submit(items(1, 2), "key-1");
    expect([again.status, await again.text(), again.headers.get("idempotent-replayed")]).toEqual([
      200,
      record,
      "true",
    ]);
  });

  it("with another body gets a conflict that names the job", async () => {
    const { job_id } = (await (await submit(items(1), "key-2")).json()) as { job_id: string };
    const other = await submit(items(2), "key-2");
    expect(other.status).toBe(409);
    expect(await other.json()).toMatchObject({
      code: "idempotency_key_reused",
      message: expect.stringContaining(job_id),
    });
  });

  it("makes one job in a race, and all requests get the same response", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit(items(1, 2, 3), "key-3")));
    const bodies = new Set(await Promise.all(answers.map((answer) => answer.text())));
    expect(bodies.size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get("idempotent-replayed") === null)).toHaveLength(1);
  });

  it("of a refused submission can be used again", async () => {
    expect((await submit({ workers: 0 }, "key-4")).status).toBe(400);
    expect((await submit(items(1), "key-4")).status).toBe(200);
  });

  it.each(["", "with space", "é", "x".repeat(256)])("%s is refused", async (key) => {
    // fetch accepts only Latin-1 in headers, and trims spaces at the ends.
    const response = await submit(items(1), key);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining("use a UUID") });
  });
});

describe("workers that do not fit on the machine", () => {
  it("are pending until they fit, across jobs, and the log says what they wait for", async () => {
    // The real-time API takes 0.2 of the one CPU, each worker 0.5. The first batch holds its worker until all has been seen.
    const release = join(server.dir, "release");
    const held = { do: "await", path: release };
    const first = await server.submit("jobs", { ...items(held, held), workers: 2 });
    const counts = async (job: string) => (await server.job("jobs", job)).worker_counts;
    await eventually("one worker runs, and its sister waits", async () => {
      const { running, pending } = (await counts(first)) ?? {};
      return running === 1 && pending === 1;
    });
    const second = await server.submit("jobs", items(3));
    await eventually("the other job's log says what its worker waits for", async () => {
      const log = await (await server.fetch(`/jobs/${second}/logs`)).text();
      const waits = /1 of 1 workers wait for compute: each takes 0.5 CPU; 0.3 CPU and \d+ MiB of 1 CPU and/;
      return waits.test(log) && (await counts(second))?.pending === 1;
    });
    writeFileSync(release, "");
    await server.ended("jobs", first);
    await server.ended("jobs", second);
  });
});
