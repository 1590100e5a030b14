/** Batches that are split: which parts go out when, and what counts. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { BatchItems, PartEntries } from "../../../src/batch/dispatch/part-entries.ts";
import { SEARCHED_ITEMS_MAX, SPLIT_ITEMS_MAX } from "../../../src/contracts/limits/jobs.ts";
import { Dispatching } from "../../harness/dispatching.ts";
import { eventually } from "../../harness/eventually.ts";

const predictor = mkdtempSync(join(tmpdir(), "quern-isolation-"));
writeFileSync(
  join(predictor, "predictor.py"),
  `
import os
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if sum(item.get("size", 0) for item in payload) > 10: raise MemoryError("too large")
        for item in payload:
            if item.get("do") == "raise": raise ValueError("no good")
            if item.get("do") == "exit": os._exit(1)
`,
);
afterAll(() => rmSync(predictor, { recursive: true }));

describe("a dispatcher that isolates guilty items", () => {
  let job: Dispatching;
  beforeEach(() => {
    job = new Dispatching(predictor);
  });
  afterEach(() => job.stop());

  const work = async (workers: number) => {
    for (let i = 0; i < workers; i++) job.dispatcher.addWorker(await job.addWorker());
  };

  it("succeeds if all its parts succeed, such as one that was too large", async () => {
    const items = Array.from({ length: 8 }, () => ({ size: 2 }));
    await job.start({ items, batchSize: 8, isolates: true });
    await work(1);
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 1, failed_attempts: 1, failed_batches: 0 });
    expect(await job.guiltyItems()).toEqual([]);
  });

  it("has one part of a batch out at a time, and the next one only after the result is durable", async () => {
    const items = [{ do: "raise" }, {}, {}, {}, {}, {}, {}, { do: "raise" }];
    await job.start({ items, batchSize: 4, isolates: true });
    job.closeGate();
    await work(1);
    await eventually("the failure of the batch is about to be committed", () => job.commits === 1);
    await work(1);
    job.dispatcher.pump();
    expect(job.leases.map(({ batches }) => batches)).toEqual([[0], [1]]);
    job.letCommitsPass();
    await job.settled();
    expect(await job.guiltyItems()).toEqual(["0.0", "1.3"]);
    expect(await job.job()).toMatchObject({ succeeded: 0, failed_attempts: 6, failed_batches: 2 });
  });

  it("searches few batches at the same time if they are large, and starts no new ones meanwhile", async () => {
    const [BATCHES, SIZE] = [16, SPLIT_ITEMS_MAX];
    const items = Array.from({ length: BATCHES * SIZE }, (_, i) => (i % SIZE === 7 ? { do: "raise" } : {}));
    await job.start({ items, batchSize: SIZE, isolates: true });
    await work(2);
    await job.settled();
    expect(await job.guiltyItems()).toEqual(Array.from({ length: BATCHES }, (_, batch) => `${batch}.7`));
    const searched = Array.from({ length: BATCHES }, (_, batch) => ({
      from: job.parts.indexOf(batch),
      to: job.parts.lastIndexOf(batch),
    }));
    const atOnce = searched.map(({ from }) => searched.filter((s) => s.from <= from && from <= s.to).length);
    expect(Math.max(...atOnce)).toBe(SEARCHED_ITEMS_MAX / SPLIT_ITEMS_MAX);
  });

  it("fails a batch that brought the server down as a whole, and does not split it", async () => {
    const plan = { items: [{}, {}, {}, {}], batchSize: 2, isolates: true };
    await job.start({ ...plan, condemned: [1], suspects: [1] });
    await work(1);
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 1, failed_attempts: 1, failed_batches: 1 });
    expect(await job.guiltyItems()).toEqual([]);
  });

  it("charges the part that was alone when the server died, once, and splits it no more", async () => {
    const part = (first: number, next: number) => ({ first, next, state: "open", attempts: 1 }) as const;
    const plan = { items: [{}, {}, {}, {}], batchSize: 4, isolates: true, parts: [part(0, 2), part(2, 4)] };
    await job.start({ ...plan, condemned: [0], suspects: [0] });
    job.closeGate();
    await work(1);
    await eventually("the charge is about to be committed", () => job.commits === 1);
    expect(await job.alone()).toEqual(new Set([0]));
    job.letCommitsPass();
    job.closeGate();
    await eventually("the other part is about to be recorded", () => job.commits === 2);
    // If the server dies now, nothing is charged again.
    expect(await job.alone()).toEqual(new Set());
    job.letCommitsPass();
    await job.settled();
    expect(job.leases.map(({ batches }) => batches)).toEqual([[0]]);
    expect(await job.guiltyItems()).toEqual(["0.0"]);
    expect(await job.job()).toMatchObject({ succeeded: 0, failed_attempts: 1, failed_batches: 1 });
  });

  it("keeps the errors of guilty items whole until they use up the space of the job's errors", async () => {
    await job.start({ items: Array(8).fill({ do: "raise" }), batchSize: 4, isolates: true, errorBytes: 1 });
    await work(1);
    await job.settled();
    const errors = await job.errors("failed_items");
    expect(errors).toHaveLength(8);
    expect(errors.filter(({ error_json }) => error_json!.includes('"traceback":""'))).toHaveLength(6);
    expect(errors.every(({ error_group }) => error_group === "ValueError: no good")).toBe(true);
    expect(job.lines).toEqual([expect.stringContaining("have used up their space")]);
  });

  it("runs the parts of a batch that was interrupted too often alone", async () => {
    const items = [{}, {}, { do: "raise" }, {}, {}, {}];
    await job.start({ items, batchSize: 2, isolates: true, suspects: [1] });
    await work(2);
    await job.settled();
    expect(job.leases.filter(({ batches }) => batches.includes(1))).toEqual(
      Array(3).fill({ batches: [1], before: 0 }),
    );
    expect(await job.guiltyItems()).toEqual(["1.0"]);
  });

  it("ends the job if ten items in a row kill their worker and nothing of their batch succeeds", async () => {
    const items = Array.from({ length: 32 }, () => ({ do: "exit" }));
    await job.start({ items, batchSize: 32, isolates: true });
    job.replacesWorkers = true;
    await work(1);
    await expect(job.settled()).rejects.toThrow("10 batches in a row failed because their worker died");
    expect(await job.guiltyItems()).toHaveLength(10);
  });
});

describe("the items of a batch", () => {
  const array = Buffer.from('[{"a":[1,2]},"x,]",3,{"b":"\\""}]');

  it("are cut out of its array as they are", () => {
    const items = new BatchItems(array);
    expect(items.count).toBe(4);
    expect(items.slice(0, 4).equals(array)).toBe(true);
    expect(items.slice(1, 3).toString()).toBe('["x,]",3]');
    expect(items.slice(3, 4).toString()).toBe('[{"b":"\\""}]');
    expect(items.text(1)).toBe('"x,]"');
  });

  it("are leased with the batch and the first of them", () => {
    const entry = new PartEntries(new BatchItems(array), 1, 3);
    const body = entry.entries(7);
    expect([body.readUInt32LE(0), body.readUInt32LE(4)]).toEqual([7, 1]);
    expect(body.subarray(8).toString()).toBe('["x,]",3]');
    expect(entry.entryBytes()).toBe(body.length);
  });
});
