/** A job's output: what `predict()` returned, once for each batch that succeeded, in the order of the input. */
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OUTPUT_FILE_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";
import { eventually } from "../../harness/eventually.ts";
import { expectRows, parseRows, readOutput, WRITER } from "../../harness/outputs.ts";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const ids = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

function inBatches<T>(items: readonly T[], size: number): T[][] {
  const batches: T[][] = [];
  for (let at = 0; at < items.length; at += size) batches.push(items.slice(at, at + size));
  return batches;
}

describe("the output of a job", () => {
  let server: TestServer;
  let directory: string;
  beforeEach(async () => {
    server = new TestServer();
    await server.start();
    directory = join(server.inputs, "out");
  });
  afterEach(() => server.stop());

  const results = async (id: string, query = "") => {
    const response = await server.fetch(`/jobs/${id}/results${query}`);
    return { status: response.status, rows: response.ok ? parseRows(await response.text()) : [] };
  };

  it("has a row for each item, in the order of the input, and a manifest that says so", async () => {
    server.deploy(project(WRITER));
    const items = ids(5_000);
    const output = { store_path: `file://${directory}` };
    const id = await server.submit("jobs", { workers: 3, item_list: { items, batch_size: 7 }, output });
    const { status } = await server.ended("jobs", id);
    const { manifest, rows } = readOutput(join(directory, id));
    expectRows(rows, inBatches(items, 7));
    expect(manifest).toMatchObject({
      ...{ job_id: id, api_name: "jobs", status, round: 1, rows: 5_000 },
      batches: { total: 715, succeeded: 715, failed: 0 },
    });
    expect((await results(id)).rows).toEqual(rows);
    expect((await results(id, "?cursor=10&end=12")).rows).toEqual(rows.slice(70, 84));
  });

  it("may have the longest path that is allowed", async () => {
    server.deploy(project(WRITER));
    const most = OUTPUT_FILE_BYTES_MAX;
    const name = `/${"n".repeat(199)}`;
    const deep = `${directory}${name.repeat((most - directory.length) / name.length)}`;
    const long = `${deep}/${"n".repeat(most - deep.length - 1)}`;
    const output = { store_path: `file://${long}` };
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: ids(3), batch_size: 1 },
      output,
    });
    expect(await server.ended("jobs", id)).toMatchObject({ status: "status_succeeded" });
    expectRows(readOutput(join(long, id)).rows, inBatches(ids(3), 1));
    const longer = { workers: 1, item_list: { items: ids(1), batch_size: 1 } };
    const refused = await server.post("/jobs", { ...longer, output: { store_path: `file://${long}n` } });
    expect(refused.status).toBe(400);
  });

  it("has one row for a batch whose predict() returns something else than a list of its length", async () => {
    server.deploy(
      project(`
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload[0] == 0: return {"sum": sum(payload)}
        if payload[0] == 2: return None
        if payload[0] == 4: return (item for item in payload)
        return [sum(payload)]
`),
    );
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [0, 1, 2, 3, 4, 5, 6, 7], batch_size: 2 },
      output: { store_path: `file://${directory}` },
    });
    await server.ended("jobs", id);
    expect(readOutput(join(directory, id)).rows).toEqual([
      { batch_index: 0, prediction: { sum: 1 } },
      { batch_index: 1, prediction: null },
      { batch_index: 2, item_index: 0, prediction: 4 },
      { batch_index: 2, item_index: 1, prediction: 5 },
      { batch_index: 3, prediction: [13] },
    ]);
  });

  it("counts a prediction that is not JSON as a failed attempt, with the cure", async () => {
    server.deploy(
      project(`
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return [[b"x", float("nan"), "fine"][item] for item in payload]
`),
    );
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [0, 1, 2], batch_size: 1 },
      output: {},
    });
    expect((await server.ended("jobs", id)).status).toBe("status_completed_with_failures");
    const { failures } = (await (await server.fetch(`/jobs/${id}/failures`)).json()) as {
      failures: { error: { message: string } }[];
    };
    expect(failures.map(({ error }) => error.message)).toEqual([
      expect.stringContaining("base64.b64encode"),
      expect.stringContaining("JSON"),
    ]);
    expect((await results(id)).rows).toEqual([{ batch_index: 2, item_index: 0, prediction: "fine" }]);
  });

  it("gets the rows of batches that a redrive repairs at their place, in a new manifest", async () => {
    const fails = join(server.dir, "fails");
    writeFileSync(fails, "");
    server.deploy(
      project(`
import os
class PythonPredictor:
    def __init__(self, config): self.path = config.get("path")
    def predict(self, payload):
        if payload[0]["id"] % 1000 == 0 and os.path.exists(self.path): raise ValueError("not yet")
        return payload
`),
    );
    const items = ids(3_000);
    const id = await server.submit("jobs", {
      ...{ workers: 2, config: { path: fails }, output: { store_path: `file://${directory}` } },
      item_list: { items, batch_size: 10 },
    });
    await server.ended("jobs", id);
    const batches = inBatches(items, 10);
    const first = readOutput(join(directory, id));
    expectRows(
      first.rows,
      batches.map((batch, index) => (index % 100 === 0 ? [] : batch)),
    );
    expect(first.manifest.batches).toEqual({ total: 300, succeeded: 297, failed: 3 });
    rmSync(fails);
    expect((await server.fetch(`/jobs/${id}/redrive`, { method: "POST" })).status).toBe(200);
    await server.ended("jobs", id);
    const second = readOutput(join(directory, id));
    expect(second.manifest).toMatchObject({
      ...{ round: 2, status: "status_succeeded" },
      batches: { total: 300, succeeded: 300, failed: 0 },
    });
    expectRows(second.rows, batches);
    expect((await results(id)).rows).toEqual(second.rows);
  });

  it("is read while the job runs, up to the first batch that is missing, and followed to its end", async () => {
    server.deploy(
      project(`
import os, time
class PythonPredictor:
    def __init__(self, config): self.path = config.get("path")
    def predict(self, payload):
        # Slow enough that nothing waits behind it at its worker.
        time.sleep(0.06)
        while payload[0] == 50 and not os.path.exists(self.path): time.sleep(0.02)
        return payload
`),
    );
    const path = join(server.dir, "go");
    const id = await server.submit("jobs", {
      ...{ workers: 2, config: { path }, output: {} },
      item_list: { items: ids(100).map(({ id }) => id), batch_size: 1 },
    });
    await eventually("the others are there", async () => {
      const { batch_metrics } = await server.job("jobs", id);
      return batch_metrics.succeeded === 99;
    });
    const followed = results(id, "?follow=true");
    expect((await results(id)).rows.map(({ prediction }) => prediction)).toEqual([...Array(50).keys()]);
    expect((await results(id, "?cursor=51")).rows).toHaveLength(49);
    writeFileSync(path, "");
    await server.ended("jobs", id);
    expect((await followed).rows.map(({ prediction }) => prediction)).toEqual([...Array(100).keys()]);
  });

  it("of a stopped job can be read as far as it was committed, and has no manifest", async () => {
    server.deploy(
      project(`
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        time.sleep(100 if payload[0] >= 20 else 0.005)
        return payload
`),
    );
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: ids(30).map(({ id }) => id), batch_size: 1 },
      output: { store_path: `file://${directory}` },
    });
    await eventually("twenty are done", async () => {
      const { batch_metrics } = await server.job("jobs", id);
      return batch_metrics.succeeded === 20;
    });
    expect((await server.fetch(`/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
    await server.ended("jobs", id);
    expect((await results(id)).rows).toHaveLength(20);
    expect(existsSync(join(directory, id)) ? readdirSync(join(directory, id)) : []).toEqual([]);
  });

  it("is kept where the API says, unless the submission says something else", async () => {
    const config = `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  output: {store_path: "file://${directory}"}\n`;
    server.deploy({ "quern.yaml": config, "predictor.py": WRITER });
    const job = { workers: 1, item_list: { items: ids(4), batch_size: 2 } };
    const inDefault = await server.submit("jobs", job);
    const elsewhere = await server.submit("jobs", {
      ...job,
      output: { store_path: `file://${directory}-2` },
    });
    for (const id of [inDefault, elsewhere]) await server.ended("jobs", id);
    expect(readdirSync(directory)).toEqual([inDefault]);
    expectRows(readOutput(join(`${directory}-2`, elsewhere)).rows, inBatches(ids(4), 2));
  });

  it("is checked without making its directories: a dry run and a refused submission leave nothing", async () => {
    server.deploy(project(WRITER));
    const item_list = { items: [{ id: 0 }], batch_size: 1 };
    const output = { store_path: `file://${server.inputs}/never/made` };
    const entries = () => readdirSync(server.inputs, { recursive: true }).sort();
    const before = entries();
    const dryRun = await server.post("/jobs?dryRun=true", { workers: 1, item_list, output });
    expect(dryRun.status).toBe(200);
    const queue_dead_letter_queue = { arn: "no/such/queue" };
    const refused = await server.post("/jobs", { workers: 1, item_list, output, queue_dead_letter_queue });
    expect(refused.status).toBe(400);
    expect(entries()).toEqual(before);
  });

  it("is refused where it cannot be written, and a job without one has no results", async () => {
    server.deploy(project(WRITER));
    const item_list = { items: [{ id: 0 }], batch_size: 1 };
    const submit = async (output: unknown) => {
      const response = await server.post("/jobs", { workers: 1, item_list, output });
      const { code, errors } = (await response.json()) as { code: string; errors?: { pointer: string }[] };
      return [response.status, code, errors?.[0]?.pointer];
    };
    expect(await submit({ store_path: "file:///not-allowed" })).toEqual([400, "path_not_allowed", undefined]);
    expect(await submit({ store_path: "ftp://x/y" })).toEqual([400, "invalid_request", "/output/store_path"]);
    expect(await submit({ store_path: "" })).toEqual([400, "invalid_request", "/output/store_path"]);
    expect(await submit({ path: "x" })).toEqual([400, "invalid_request", "/output/path"]);
    const id = await server.submit("jobs", { workers: 1, item_list });
    await server.ended("jobs", id);
    expect((await results(id)).status).toBe(404);
  });
});
