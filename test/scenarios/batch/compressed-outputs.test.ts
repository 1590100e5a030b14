/** Outputs whose parts are compressed: what they are, and how they are read, repaired and checked. */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outputDirectory } from "../../../src/contracts/data-layout.ts";
import { unzstd } from "../../harness/decompress.ts";
import { eventually } from "../../harness/eventually.ts";
import { expectRows, parseRows, readOutput } from "../../harness/outputs.ts";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** Fails in items with `fail` as long as a file is there; waits in items with `wait` until one is there. */
const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.fails, self.go, self.size = config.get("fails", ""), config.get("go", ""), config.get("size", 10)
        self.begun = config.get("begun", os.devnull)
    def predict(self, payload):
        with open(self.begun, "a") as begun: begun.write("%d\\n" % payload[0]["id"])
        for item in payload:
            if item.get("fail") and os.path.exists(self.fails): raise ValueError("not yet")
            while item.get("wait") and not os.path.exists(self.go): time.sleep(0.02)
        return [{"id": item["id"], "text": "x" * self.size} for item in payload]
`;
/** So large that 16 batches of four fill a part. */
const LARGE = 2 ** 20;

type Item = { id: number; fail?: true; wait?: true };
const items = (count: number, more: (id: number) => Partial<Item> = () => ({})): Item[] =>
  Array.from({ length: count }, (_, id) => ({ id, ...more(id) }));
const inFours = (all: readonly Item[]) =>
  Array.from({ length: Math.ceil(all.length / 4) }, (_, batch) => all.slice(4 * batch, 4 * batch + 4));

/** A frame of one block: a byte that is repeated 128 KiB times, as often as wanted. */
function bomb(head: string, blocks: number): Buffer {
  const raw = (text: string) => [(text.length << 3) & 0xff, text.length >> 5, 0, ...Buffer.from(text)];
  const repeated = [0x02, 0x00, 0x10, 0x78];
  const frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x48, ...raw(head)];
  const all = Buffer.concat([Buffer.from(frame), ...Array<Buffer>(blocks).fill(Buffer.from(repeated))]);
  all[all.length - 4]! |= 1;
  return all;
}

describe("a compressed output", () => {
  let server: TestServer;
  let directory: string;
  beforeEach(async () => {
    server = new TestServer();
    await server.start();
    directory = join(server.inputs, "out");
    server.deploy(project(PREDICTOR));
  });
  afterEach(() => server.stop());

  const submission = (all: readonly Item[], output: object, config = {}) => ({
    ...{ workers: 1, config, output: { compression: "zstd", ...output } },
    item_list: { items: all, batch_size: 4 },
  });
  const toDirectory = () => ({ store_path: `file://${directory}` });
  const results = async (id: string, query = "") => {
    const response = await server.fetch(`/jobs/${id}/results${query}`);
    return parseRows(await response.text());
  };
  const partsOf = (id: string) =>
    readOutput(join(directory, id)).manifest.parts.map(({ path }) => join(directory, id, path));
  const verified = async (id: string) => {
    const response = await server.fetch(`/jobs/${id}/verify`, { method: "POST" });
    type Line = { path?: string; ok?: boolean; differences: string[] };
    const lines = (await response.text()).trim().split("\n");
    return lines.map((line) => JSON.parse(line) as Line);
  };

  it("has parts that unpack to the rows, says so in its manifest, and is read in ranges of batches", async () => {
    const all = items(80);
    const id = await server.submit("jobs", submission(all, toDirectory(), { size: LARGE }));
    await server.ended("jobs", id);
    const { manifest, rows } = readOutput(join(directory, id));
    expect(manifest).toMatchObject({ compression: "zstd", rows: 80, batches: { succeeded: 20 } });
    expect(manifest.parts.map(({ path }) => path)).toEqual(
      [0, 1].map((number) => expect.stringMatching(`^part-${number}-1\\.\\d+\\.jsonl\\.zst$`)),
    );
    expect(manifest.parts.map((part) => part.rows)).toEqual([64, 16]);
    expectRows(rows, inFours(all));
    // The second range begins and ends in the middle of parts.
    for (const [first, end] of [
      [0, 20],
      [10, 18],
      [19, 20],
    ] as const)
      expect(
        (await results(id, `?cursor=${first}&end=${end}`)).map(({ batch_index }) => batch_index),
      ).toEqual(rows.slice(4 * first, 4 * end).map(({ batch_index }) => batch_index));
    expect((await verified(id)).at(-1)).toMatchObject({ ok: true, rows: 80, differences: [] });
    const { bytes } = (await server.job("jobs", id)).output!;
    expect(bytes).toBe(manifest.parts.reduce((sum, part) => sum + part.bytes, 0));
  });

  it("is followed while the job runs, and each part is read from where the reader was", async () => {
    const [go, begun] = ["go", "begun"].map((name) => join(server.dir, name)) as [string, string];
    // The last batch waits. The first part is in the store then, and the rows of the others are in the server.
    const all = items(80, (id) => (id === 78 ? { wait: true } : {}));
    const begin = () => server.submit("jobs", submission(all, toDirectory(), { size: LARGE, go, begun }));
    const isBefore = (wanted: number) => {
      const batches = readFileSync(begun, "utf8").trim().split("\n");
      return batches.includes("76") && new Set(batches.slice(0, batches.indexOf("76"))).size < wanted;
    };
    let id = "";
    for (let isReached = false; !isReached; ) {
      writeFileSync(begun, "");
      id = await begin();
      await eventually("the first part is written, and all others but one are counted", async () => {
        const { output, batch_metrics } = await server.job("jobs", id);
        isReached = output?.batches === 16 && batch_metrics.succeeded === 19;
        return isReached || isBefore(19);
      });
      // Batches have no order: those that a busy worker has given back may come after the last one.
      if (isReached) break;
      writeFileSync(go, "");
      await server.ended("jobs", id);
      rmSync(go);
    }
    const followed = results(id, "?follow=true&cursor=10");
    const ids = (rows: Awaited<typeof followed>) => rows.map(({ batch_index }) => batch_index);
    expect(ids(await results(id, "?cursor=10&end=18"))).toEqual(
      inFours(all).flatMap((batch, index) => (index >= 10 && index < 18 ? batch.map(() => index) : [])),
    );
    writeFileSync(go, "");
    await server.ended("jobs", id);
    expect(ids(await followed)).toEqual(all.slice(40).map((item) => Math.floor(item.id / 4)));
  });

  it("gets the rows of batches that a redrive repairs at their place, compressed again", async () => {
    const fails = join(server.dir, "fails");
    writeFileSync(fails, "");
    const all = items(80, (id) => (id % 40 === 8 ? { fail: true } : {}));
    const id = await server.submit("jobs", submission(all, toDirectory(), { fails, size: LARGE }));
    await server.ended("jobs", id);
    const batches = inFours(all);
    const isBad = (batch: readonly Item[]) => batch.some(({ fail }) => fail);
    expectRows(
      readOutput(join(directory, id)).rows,
      batches.map((batch) => (isBad(batch) ? [] : batch)),
    );
    rmSync(fails);
    expect((await server.fetch(`/jobs/${id}/redrive`, { method: "POST" })).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
    const { manifest, rows } = readOutput(join(directory, id));
    expect(manifest).toMatchObject({ round: 2, compression: "zstd", batches: { failed: 0 } });
    expectRows(rows, batches);
    expect(await results(id)).toEqual(rows);
    expect((await verified(id)).at(-1)).toMatchObject({ ok: true });
  });

  it("differs from what was written if a part was changed, cut off, removed or replaced by a bomb", async () => {
    const rowHead = '{"batch_index":0,"prediction":"';
    const spoiled: [string, (part: string) => void, RegExp][] = [
      ["changed in the middle", (part) => change(part, 40), /decompressed|sha256|no row|unpacks to/],
      ["longer", (part) => appendFileSync(part, "more"), /more than the \d+ bytes that were written/],
      [
        "shorter",
        (part) => writeFileSync(part, readFileSync(part).subarray(0, 60)),
        /cannot be decompressed: unexpected end/,
      ],
      [
        "empty",
        (part) => writeFileSync(part, ""),
        /unpacks to 0 bytes, and \d+ were written|unexpected end of file/,
      ],
      [
        "not compressed",
        (part) => writeFileSync(part, unzstd(readFileSync(part)).subarray(0, 90)),
        /does not begin like Zstandard/,
      ],
      [
        "a bomb",
        (part) => writeFileSync(part, bomb(rowHead, 20)),
        /unpacks to more bytes, and \d+ were written/,
      ],
      [
        "a bomb of many rows",
        (part) => writeFileSync(part, bomb(`${rowHead}"}\n`, 20)),
        /is no row|unpacks to more bytes/,
      ],
      [
        "a large window",
        (part) => writeFileSync(part, Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x98, 1, 0, 0])),
        /window of \d+ bytes is more/,
      ],
      ["removed", (part) => rmSync(part), /is missing/],
    ];
    const id = await server.submit("jobs", submission(items(40), toDirectory()));
    await server.ended("jobs", id);
    const part = partsOf(id)[0]!;
    const written = readFileSync(part);
    for (const [what, spoil, message] of spoiled) {
      spoil(part);
      const lines = await verified(id);
      expect(lines.at(-1)!.ok, what).toBe(false);
      expect(lines[0]!.differences.join("\n"), what).toMatch(message);
      // Most break the response off, after some rows or none.
      const answer = server.fetch(`/jobs/${id}/results`).then((response) => response.text());
      expect((await answer.catch(() => "")).length, what).toBeLessThanOrEqual(unzstd(written).length);
      writeFileSync(part, written);
    }
    expect((await verified(id)).at(-1)!.ok).toBe(true);
  });

  it("is asked for by an option of the command line, and by the configuration of the API", async () => {
    const file = join(server.dir, "job.json");
    const { output: _, ...job } = submission(items(8), {});
    writeFileSync(file, JSON.stringify(job));
    const submit = (...options: string[]) => server.cli(["job", "submit", "jobs", file, ...options]);
    expect(submit("--output-compression", "zstd")).toMatchObject({
      ...{ code: 2, err: expect.stringContaining("needs --output-path") },
    });
    expect(submit("--output-path", "quern:", "--output-compression", "gzip")).toMatchObject({
      ...{ code: 1, err: expect.stringContaining('must be "none" or "zstd"') },
    });
    const byOption = submit("--output-path", "quern:", "--output-compression", "zstd").out.trim();
    await server.ended("jobs", byOption);
    expect(readOutput(outputDirectory(server.dataDir, byOption)).manifest.compression).toBe("zstd");
    const config = `- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  output: {compression: zstd}\n`;
    server.deploy({ "quern.yaml": config, "predictor.py": PREDICTOR });
    const byDefault = await server.submit("jobs", job);
    const plain = await server.submit("jobs", { ...job, output: {} });
    for (const id of [byDefault, plain]) await server.ended("jobs", id);
    expect(readOutput(outputDirectory(server.dataDir, byDefault)).manifest.compression).toBe("zstd");
    const { manifest } = readOutput(outputDirectory(server.dataDir, plain));
    expect(Object.keys(manifest)).not.toContain("compression");
    expect(existsSync(join(outputDirectory(server.dataDir, plain), manifest.parts[0]!.path))).toBe(true);
  });
});

function change(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at]! ^= 0x55;
  writeFileSync(path, bytes);
}
