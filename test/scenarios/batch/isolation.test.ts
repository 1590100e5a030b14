/** `on_failure: isolate`: batches that fail are split until their guilty items stand alone (docs/contract/isolation.md). */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { callsOf, expectResults, failuresOf, GUILTY } from "../../harness/isolation.ts";
import { readOutput } from "../../harness/outputs.ts";
import { TestServer } from "../../harness/server.ts";

type Item = { id: number; do?: string };

/** Items of which those in `guilty` do what it says. */
const itemsWith = (count: number, guilty: Record<number, string>): Item[] =>
  Array.from({ length: count }, (_, id) => (guilty[id] === undefined ? { id } : { id, do: guilty[id] }));

const isGood = (item: Item) => item.do === undefined;

function inBatches(items: readonly Item[], size: number): Item[][] {
  const batches: Item[][] = [];
  for (let at = 0; at < items.length; at += size) batches.push(items.slice(at, at + size));
  return batches;
}

describe("a job with on_failure: isolate", () => {
  let server: TestServer;
  let log: string;
  let directory: string;
  beforeEach(async () => {
    server = new TestServer();
    await server.start();
    log = join(server.dir, "calls");
    directory = join(server.inputs, "out");
    server.deploy({
      "quern.yaml":
        "- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n" +
        "- name: timed\n  kind: BatchAPI\n  predictor: {path: predictor.py, timeout: 1s}\n" +
        "- name: small\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  compute: {mem: 200Mi}\n",
      "predictor.py": GUILTY,
    });
  });
  afterEach(() => server.stop());

  const fileOf = (items: readonly Item[], before = "") =>
    server.writeInput("in.jsonl", before + items.map((item) => `${JSON.stringify(item)}\n`).join(""));

  const job = (items: readonly Item[], more: object = {}) => ({
    ...{ workers: 1, on_failure: "isolate", output: { store_path: `file://${directory}` } },
    delimited_files: { store_paths: [fileOf(items)], batch_size: 1000 },
    ...more,
    config: { log, ...(more as { config?: object }).config },
  });

  it("finds 1 guilty item in a batch of 1,000 with at most 21 extra calls, and keeps the 999 predictions", async () => {
    const items = itemsWith(1000, { 617: "raise" });
    const id = await server.submit("jobs", job(items));
    const ended = await server.ended("jobs", id);
    expect(ended).toMatchObject({ status: "status_completed_with_failures", on_failure: "isolate" });
    const calls = callsOf(log);
    expect(calls[0]).toEqual({ batchId: `${id}-0`, items: 1000 });
    expect(calls.length - 1).toBeLessThanOrEqual(21);
    expect(calls.at(-1)!.batchId).toMatch(/^\w+-0-\d+-\d+$/);
    expect(ended.batch_metrics).toMatchObject({ succeeded: 0, failed: calls.filter(isFailed).length });
    expect(await failuresOf(server, id)).toEqual([
      expect.objectContaining({
        ...{ batch_id: `${id}-0`, batch_index: 0, item_index: 617, payload: [{ id: 617, do: "raise" }] },
        source: { path: `file://${join(server.inputs, "in.jsonl")}`, line: 618 },
        error: expect.objectContaining({ type: "ValueError", message: "no good: 617" }),
      }),
    ]);
    await expectResults(server, id, [items], isGood);
    const { manifest, rows } = readOutput(join(directory, id));
    expect(rows).toHaveLength(999);
    expect(manifest.batches).toEqual({ total: 1, succeeded: 0, failed: 1, partial: 1 });
    const verified = server.cli(["job", "verify", "jobs", id]);
    expect([verified.code, verified.out]).toEqual([0, expect.any(String)]);
    expect(server.cli(["job", "failures", "jobs", id]).out).toContain("0.617 file://");

    function isFailed({ batchId }: { batchId: string }): boolean {
      const [, , first = "0", last = "999"] = batchId.split("-");
      return Number(first) <= 617 && Number(last) >= 617;
    }
  });

  it("finds three that segfault, and ends with status_worker_error", async () => {
    const items = itemsWith(300, { 5: "segfault", 123: "segfault", 124: "segfault" });
    const whole = job(items);
    const delimited_files = { store_paths: [fileOf(items, "\n\n")], batch_size: 100 };
    const id = await server.submit("jobs", { ...whole, workers: 2, delimited_files });
    const ended = await server.ended("jobs", id);
    expect(ended).toMatchObject({
      ...{ status: "status_worker_error", total_batch_count: 3 },
      reason: { code: "worker_died", evidence: { signal: "SIGSEGV" } },
    });
    const path = `file://${join(server.inputs, "in.jsonl")}`;
    expect(
      (await failuresOf(server, id)).map(({ batch_index, item_index, source, error }) => [
        ...[batch_index, item_index, source, error.type],
      ]),
    ).toEqual([
      [0, 5, { path, line: 8 }, "WorkerDied"],
      [1, 23, { path, line: 126 }, "WorkerDied"],
      [1, 24, { path, line: 127 }, "WorkerDied"],
    ]);
    await expectResults(server, id, inBatches(items, 100), isGood);
    expect(callsOf(log).length - 3).toBeLessThanOrEqual(2 * 3 * 7 + 1);
  });

  it("finds one that hangs, by the timeout", async () => {
    const items = itemsWith(8, { 2: "hang" });
    const body = { ...job(items), item_list: { items, batch_size: 8 }, delimited_files: undefined };
    const id = await server.submit("timed", body);
    expect((await server.ended("timed", id)).status).toBe("status_completed_with_failures");
    const response = await server.fetch(`/timed/${id}/failures`);
    expect(await response.json()).toMatchObject({
      failures: [{ batch_index: 0, item_index: 2, error: { type: "PredictionTimeout" } }],
    });
    expect(callsOf(log).length - 1).toBeLessThanOrEqual(7);
  });

  it("finds one that needs too much memory, and runs a batch that was too large in parts", async () => {
    const hog = (items: readonly Item[], more: object) => ({
      ...{ ...job(items, more), item_list: { items, batch_size: 8 }, delimited_files: undefined },
    });
    const one = itemsWith(8, { 5: "hog" });
    const guilty = await server.submit("small", hog(one, {}));
    expect((await server.ended("small", guilty)).status).toBe("status_worker_oom");
    const response = await server.fetch(`/small/${guilty}/failures`);
    expect(await response.json()).toMatchObject({
      failures: [{ batch_index: 0, item_index: 5, error: { type: "OutOfMemory" } }],
    });
    expect(readOutput(join(directory, guilty)).rows).toHaveLength(7);
    const large = await server.submit("small", hog(itemsWith(8, {}), { config: { fits: 4 } }));
    expect((await server.ended("small", large)).status).toBe("status_succeeded");
    expect(readOutput(join(directory, large)).rows).toHaveLength(8);
    expect(callsOf(log).slice(-2)).toEqual([
      { batchId: `${large}-0-0-3`, items: 4 },
      { batchId: `${large}-0-4-7`, items: 4 },
    ]);
  });

  it("continues the search after the controller was killed, without what is known already", async () => {
    const items = itemsWith(1000, { 31: "raise", 617: "raise" });
    const pause = { below: 40, reached: join(server.dir, "reached"), go: join(server.dir, "go") };
    const id = await server.submit("jobs", job(items, { config: { pause } }));
    await eventually("parts of a few items are tried", () => existsSync(pause.reached));
    const before = callsOf(log);
    process.kill(server.child("controller"), "SIGKILL");
    await eventually("another controller answers", async () => (await server.fetch("/jobs")).status === 200);
    writeFileSync(pause.go, "");
    const ended = await server.ended("jobs", id);
    expect(ended.status).toBe("status_completed_with_failures");
    expect((await failuresOf(server, id)).map(({ item_index }) => item_index)).toEqual([31, 617]);
    await expectResults(server, id, [items], isGood);
    // The call that the kill interrupted is the only one that came twice.
    const calls = callsOf(log);
    const after = calls.slice(before.length);
    expect(after.filter(({ batchId }) => before.some((call) => call.batchId === batchId))).toEqual([
      before.at(-1),
    ]);
    expect(calls.length - 2).toBeLessThanOrEqual(2 * 2 * 10 + 1);
    expect(readOutput(join(directory, id)).rows).toHaveLength(998);
  });

  it.each(["rows-after-sync:2", "ack-before-commit:3", "ack-after-commit:4", "part-after-commit"])(
    "killed at %s has each prediction once, and each failure",
    async (point) => {
      await server.stop();
      server = new TestServer();
      await server.start({ QUERN_TEST_KILL_AT: point });
      log = join(server.dir, "calls");
      directory = join(server.inputs, "out");
      server.deploy(
        {
          "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
          "predictor.py": GUILTY,
        },
        { wait: false },
      );
      const items = itemsWith(64, { 9: "raise", 40: "raise" });
      const arn = { arn: "letters", max_receive_count: 1 };
      const id = await server.submit("jobs", { ...job(items), queue_dead_letter_queue: arn });
      await eventually("the controller was killed and is back", () =>
        server.stderr.includes("the controller ended (SIGKILL)"),
      );
      await eventually(
        "another controller answers",
        async () => (await server.fetch("/jobs")).status === 200,
      );
      await server.ended("jobs", id);
      expect((await failuresOf(server, id)).map(({ item_index }) => item_index)).toEqual([9, 40]);
      await expectResults(server, id, [items], isGood);
      const { manifest } = readOutput(join(directory, id));
      expect(manifest.batches).toEqual({ total: 1, succeeded: 0, failed: 1, partial: 1 });
      const { messages } = JSON.parse(server.cli(["queue", "messages", "letters", "-o", "json"]).out) as {
        messages: { body: string }[];
      };
      expect(messages.map(({ body }) => (JSON.parse(body) as Item[]).map((item) => item.id))).toEqual([
        [9],
        [40],
      ]);
    },
  );

  it("has each prediction and each failure once, however often the controller is killed", async () => {
    // Of 5,000 items 55 are guilty, in most of the batches; some lines are blank.
    const what = (id: number) => (id % 911 === 3 ? "segfault" : id % 101 === 0 ? "raise" : undefined);
    const items = Array.from(
      { length: 5000 },
      (_, id) => ({ id, ...(what(id) && { do: what(id) }) }) as Item,
    );
    const lines = items.map((item) => `${item.id % 7 === 0 ? "\n" : ""}${JSON.stringify(item)}\n`);
    const path = server.writeInput("blank-lines.jsonl", lines.join(""));
    const id = await server.submit("jobs", {
      ...{ ...job(items), workers: 3, queue_dead_letter_queue: { arn: "letters", max_receive_count: 1 } },
      delimited_files: { store_paths: [path], batch_size: 97 },
    });
    const killed = async (times: number, calls: number) => {
      for (let i = 0; i < times; i++) {
        const before = existsSync(log) ? callsOf(log).length : 0;
        await eventually(
          "there are more calls",
          () => existsSync(log) && callsOf(log).length > before + calls,
        );
        process.kill(server.child("controller"), "SIGKILL");
        await eventually("another one answers", async () => (await server.fetch("/jobs")).status === 200);
      }
      return server.ended("jobs", id);
    };
    expect((await killed(4, 80)).status).toBe("status_worker_error");
    const batches = inBatches(items, 97);
    const guilty = items.filter((item) => !isGood(item));
    await expectResults(server, id, batches, isGood);
    const failures = await failuresOf(server, id, "?limit=500");
    expect(failures.map(({ payload }) => payload)).toEqual(guilty.map((item) => [item]));
    expect(failures.map(({ source }) => source?.line)).toEqual(
      guilty.map((item) => item.id + 1 + Math.floor(item.id / 7) + 1),
    );
    const { out } = server.cli(["queue", "messages", "letters", "--limit", "500", "-o", "json"]);
    const letters = (JSON.parse(out) as { messages: { body: string }[] }).messages;
    expect(letters.map(({ body }) => (JSON.parse(body) as Item[])[0]!.id).sort((a, b) => a - b)).toEqual(
      guilty.map((item) => item.id),
    );
    expect(server.cli(["job", "verify", "jobs", id]).code).toBe(0);
    writeFileSync(`${log}.fixed`, "");
    expect((await server.post(`/jobs/${id}/redrive`, {})).status).toBe(200);
    expect((await killed(1, 3)).status).toBe("status_succeeded");
    await expectResults(server, id, batches, () => true);
    expect(server.cli(["job", "verify", "jobs", id]).code).toBe(0);
  });

  it("runs only the guilty items again in a redrive, and puts their predictions at their place", async () => {
    const items = itemsWith(40, { 3: "raise", 4: "raise", 17: "raise", 39: "segfault" });
    const delimited_files = { store_paths: [fileOf(items)], batch_size: 20 };
    const id = await server.submit("jobs", { ...job(items), delimited_files });
    expect((await server.ended("jobs", id)).status).toBe("status_worker_error");
    const first = callsOf(log).length;
    const batches = inBatches(items, 20);
    await expectResults(server, id, batches, isGood);
    writeFileSync(`${log}.fixed`, "");
    const redrive = async (error?: string) => {
      const response = await server.post(`/jobs/${id}/redrive`, error === undefined ? {} : { error });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
      return server.ended("jobs", id);
    };
    // Only items whose own error has this text.
    expect((await redrive("no good: 17")).status).toBe("status_worker_error");
    expect(
      callsOf(log)
        .slice(first)
        .map(({ batchId }) => batchId),
    ).toEqual([`${id}-0-17-17`]);
    expect((await failuresOf(server, id)).map(({ item_index }) => item_index)).toEqual([3, 4, 19]);
    await expectResults(server, id, batches, (item: Item) => isGood(item) || item.id === 17);
    expect((await redrive()).status).toBe("status_succeeded");
    // Adjacent items go together.
    expect(
      callsOf(log)
        .slice(first + 1)
        .map(({ batchId }) => batchId),
    ).toEqual([`${id}-0-3-4`, `${id}-1-19-19`]);
    await expectResults(server, id, batches, () => true);
    const { manifest, rows } = readOutput(join(directory, id));
    expect(manifest.batches).toEqual({ total: 2, succeeded: 2, failed: 0 });
    expect(rows).toHaveLength(40);
    expect(server.cli(["job", "verify", "jobs", id]).code).toBe(0);
  });

  it("continues a search that was stopped when the job is resumed", async () => {
    const items = itemsWith(100, { 60: "raise" });
    const pause = { below: 30, reached: join(server.dir, "reached"), go: join(server.dir, "go") };
    const id = await server.submit("jobs", job(items, { config: { pause } }));
    await eventually("parts of a few items are tried", () => existsSync(pause.reached));
    const before = callsOf(log);
    expect((await server.fetch(`/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_stopped");
    writeFileSync(pause.go, "");
    expect((await server.post(`/jobs/${id}/resume`, {})).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_completed_with_failures");
    await expectResults(server, id, [items], isGood);
    const repeated = callsOf(log)
      .slice(before.length)
      .filter(({ batchId }) => before.some((call) => call.batchId === batchId));
    expect(repeated).toEqual([before.at(-1)]);
  });

  it("sends only guilty items to the dead letter queue, each with its source, after the attempts of the batch", async () => {
    const items = itemsWith(10, { 6: "raise" });
    const arn = { arn: "letters", max_receive_count: 2 };
    const id = await server.submit("jobs", {
      ...job(items),
      queue_dead_letter_queue: arn,
      output: undefined,
    });
    await server.ended("jobs", id);
    expect(callsOf(log).slice(0, 2)).toEqual(Array(2).fill({ batchId: `${id}-0`, items: 10 }));
    const { messages } = JSON.parse(server.cli(["queue", "messages", "letters", "-o", "json"]).out) as {
      messages: { body: string; attributes: Record<string, string> }[];
    };
    expect(messages.map(({ body, attributes }) => [JSON.parse(body), attributes])).toEqual([
      [
        [{ id: 6, do: "raise" }],
        expect.objectContaining({
          ...{ batch_id: `${id}-0`, item_index: "6", source_line: "7" },
          source_path: `file://${join(server.inputs, "in.jsonl")}`,
        }),
      ],
    ]);
    const [failure] = await failuresOf(server, id);
    expect(messages[0]!.attributes.receive_count).toBe(String(failure!.receive_count));
  });

  it("does not split a batch of one item, nor one whose predict() does not return one value an item", async () => {
    const items = itemsWith(3, { 1: "raise" });
    const one = await server.submit("jobs", {
      ...{ ...job(items), delimited_files: undefined, item_list: { items, batch_size: 1 } },
    });
    await server.ended("jobs", one);
    expect(callsOf(log)).toHaveLength(3);
    const [failure] = await failuresOf(server, one);
    expect([failure!.batch_index, failure!.item_index]).toEqual([1, undefined]);
    const sum = await server.submit("jobs", job(itemsWith(4, {}), { config: { returns: "sum" } }));
    await server.ended("jobs", sum);
    expect(callsOf(log)).toHaveLength(4);
    expect(await failuresOf(server, sum)).toMatchObject([
      { batch_index: 0, error: { message: expect.stringContaining("return a list with one value an item") } },
    ]);
    expect((await failuresOf(server, sum))[0]!.item_index).toBeUndefined();
    // Without an output, what it returns does not matter.
    const without = job(itemsWith(4, { 2: "raise" }), { config: { returns: "sum" } });
    const id = await server.submit("jobs", { ...without, output: undefined });
    await server.ended("jobs", id);
    expect((await failuresOf(server, id)).map(({ item_index }) => item_index)).toEqual([2]);
  });

  it("lists guilty items page by page, also within a batch", async () => {
    const guilty = Object.fromEntries([1, 2, 5, 8, 13].map((item) => [item, "raise"]));
    const items = itemsWith(16, guilty);
    const delimited_files = { store_paths: [fileOf(items)], batch_size: 8 };
    const id = await server.submit("jobs", { ...job(items), delimited_files, output: undefined });
    await server.ended("jobs", id);
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const response = await server.fetch(`/jobs/${id}/failures?limit=2${cursor && `&cursor=${cursor}`}`);
      const page = (await response.json()) as { failures: { batch_index: number; item_index: number }[] } & {
        next_cursor: string | null;
      };
      expect(page.failures.length).toBeLessThanOrEqual(2);
      found.push(...page.failures.map(({ batch_index, item_index }) => `${batch_index}.${item_index}`));
      cursor = page.next_cursor;
    }
    expect(found).toEqual(["0.1", "0.2", "0.5", "1.0", "1.5"]);
    const lines = await server.fetch(`/jobs/${id}/failures`, { headers: { accept: "application/x-ndjson" } });
    expect((await lines.text()).trimEnd().split("\n")).toHaveLength(5);
  });

  it("names the path of a file that is an item", async () => {
    const paths = ["a", "b", "c"].map((name) => server.writeInput(`${name}.bin`, name));
    server.deploy({
      "quern.yaml": "- name: paths\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
      "predictor.py": `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if any(path.endswith("b.bin") for path in payload): raise ValueError("unreadable")
`,
    });
    const id = await server.submit("paths", {
      ...{ workers: 1, on_failure: "isolate" },
      file_path_lister: { store_paths: [`file://${server.inputs}`], includes: ["**.bin"], batch_size: 10 },
    });
    await server.ended("paths", id);
    const response = await server.fetch(`/paths/${id}/failures`);
    expect(await response.json()).toMatchObject({
      failures: [{ item_index: 1, source: { path: expect.stringContaining(paths[1]!) } }],
    });
  });
});
