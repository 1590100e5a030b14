/** The output of a job in every store: several parts, a redrive that repairs batches in the middle; plain and compressed. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outputDirectory } from "../../src/contracts/data-layout.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { expectRows, type Output, parseRows, readOutput, readStoredOutput } from "../harness/outputs.ts";
import { project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";
import { openTestStore, STORES, type TestStore } from "../harness/stores.ts";

/** 40 KB an item: 2,000 of them fill a part, and some of the next one. Compressed, they are some megabytes. */
const PREDICTOR = `
import os
class PythonPredictor:
    def __init__(self, config):
        self.path = config.get("fails")
    def predict(self, payload):
        if payload[0]["id"] % 300 == 0 and os.path.exists(self.path): raise ValueError("not yet")
        return [{"id": item["id"], "text": self.text(item["id"])} for item in payload]
    def text(self, id): return os.urandom(20_000).hex() if id % 10 == 0 else "x" * 40_000
`;
const ITEMS = Array.from({ length: 2_000 }, (_, id) => ({ id }));
const BATCHES = Array.from({ length: 200 }, (_, batch) => ITEMS.slice(10 * batch, 10 * batch + 10));

/** Runs a job whose seven failed batches a redrive repairs, and reads its output after each round. */
async function expectEveryPrediction(
  server: TestServer,
  output: { store_path: string; compression?: "zstd" },
  read: (jobId: string) => Output | Promise<Output>,
): Promise<void> {
  const fails = join(server.dir, "fails");
  writeFileSync(fails, "");
  const id = await server.submit("jobs", {
    ...{ workers: 2, config: { fails }, output },
    item_list: { items: ITEMS, batch_size: 10 },
  });
  expect(await server.ended("jobs", id)).toMatchObject({ status: "status_completed_with_failures" });
  const first = await read(id);
  expect(first.manifest).toMatchObject({ batches: { total: 200, succeeded: 193, failed: 7 } });
  expect(first.manifest.compression).toBe(output.compression);
  expect(first.manifest.parts.length).toBeGreaterThan(1);
  expectRows(
    first.rows,
    BATCHES.map((batch, index) => (index % 30 === 0 ? [] : batch)),
  );
  rmSync(fails);
  expect((await server.fetch(`/jobs/${id}/redrive`, { method: "POST" })).status).toBe(200);
  expect(await server.ended("jobs", id)).toMatchObject({ status: "status_succeeded" });
  const second = await read(id);
  expect(second.manifest).toMatchObject({ round: 2, batches: { total: 200, succeeded: 200, failed: 0 } });
  expect(second.manifest.compression).toBe(output.compression);
  expectRows(second.rows, BATCHES);
  const results = await server.fetch(`/jobs/${id}/results?cursor=195`);
  expectRows(
    parseRows(await results.text()),
    BATCHES.map((batch, index) => (index >= 195 ? batch : [])),
  );
  const verified = await server.fetch(`/jobs/${id}/verify`, { method: "POST" });
  const whole = (await verified.text()).trim().split("\n").at(-1)!;
  expect(JSON.parse(whole)).toMatchObject({ ok: true, rows: 2_000, batches: 200, differences: [] });
}

describe.each(STORES)("$name", ({ start, isInstalled }) => {
  let server: TestServer;
  let bucket: TestStore;
  let store: ObjectStore;

  beforeAll(async () => {
    if (!isInstalled) return;
    bucket = await start();
    store = openTestStore(bucket);
    server = new TestServer(bucket.env);
    const roots = bucket.roots.flatMap((root) => ["--allow-local-root", root]);
    await server.start({}, roots);
    server.deploy(project(PREDICTOR));
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    await bucket?.stop();
  });

  it.runIf(isInstalled)("has every prediction once, in order, also after a redrive", async () => {
    const prefix = `${bucket.base}/out put`;
    const read = (id: string) => readStoredOutput(store, `${prefix}/${id}/`);
    await expectEveryPrediction(server, { store_path: prefix }, read);
  });

  it.runIf(isInstalled)(
    "has every prediction also if it is compressed, as other programs read it",
    async () => {
      const prefix = `${bucket.base}/packed`;
      const read = (id: string) => readStoredOutput(store, `${prefix}/${id}/`);
      await expectEveryPrediction(server, { store_path: prefix, compression: "zstd" }, read);
    },
  );
});

describe("the server itself", () => {
  const server = new TestServer();
  const read = (id: string) => readOutput(outputDirectory(server.dataDir, id));
  beforeAll(async () => {
    await server.start();
    server.deploy(project(PREDICTOR));
  });
  afterAll(() => server.stop());

  it("has every prediction once, in order, also after a redrive", async () => {
    await expectEveryPrediction(server, { store_path: "quern:" }, read);
  });

  it("has every prediction also if it is compressed, as other programs read it", async () => {
    await expectEveryPrediction(server, { store_path: "quern:", compression: "zstd" }, read);
  });
});
