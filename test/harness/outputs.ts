/** Reads an output as its reader would: by the manifest alone, and all that it says is checked. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Manifest } from "../../src/batch/output/manifest.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { unzstd } from "./decompress.ts";

export interface OutputRow {
  batch_index: number;
  item_index?: number;
  prediction: unknown;
}

/** Predictions that fill parts: `size` is the bytes of a prediction. Items with `fail` raise. */
export const WRITER = `
class PythonPredictor:
    def __init__(self, config):
        self.size = config.get("size", 10)
    def predict(self, payload):
        for item in payload:
            if item.get("fail"): raise ValueError("no good: %s" % item["id"])
        return [{"id": item["id"], "text": "x" * self.size} for item in payload]
`;

export interface Output {
  manifest: Manifest;
  rows: OutputRow[];
}

/** The output in a directory. */
export function readOutput(directory: string): Output {
  const names = readdirSync(directory);
  return checked(new Map(names.map((name) => [name, readFileSync(join(directory, name))])));
}

/** The output below an address of a store; it ends with a slash. */
export async function readStoredOutput(store: ObjectStore, prefix: string): Promise<Output> {
  const objects = new Map<string, Buffer>();
  for await (const page of store.list(prefix, { sizes: true }))
    for (const { path, bytes } of page)
      objects.set(path.slice(prefix.length), await contentOf(store, path, bytes!));
  return checked(objects);
}

async function contentOf(store: ObjectStore, path: string, bytes: number): Promise<Buffer> {
  const object = await store.open(path);
  const content = Buffer.alloc(bytes);
  for (let filled = 0; filled < bytes; ) {
    const read = await object.read(content, filled, filled, bytes - filled);
    expect(read, path).toBeGreaterThan(0);
    filled += read;
  }
  await object.close();
  return content;
}

/** All rows in the order of the parts. Each part must be as the manifest says, and nothing else may be there. */
function checked(objects: ReadonlyMap<string, Buffer>): Output {
  const manifest = JSON.parse(objects.get("manifest.json")!.toString()) as Manifest;
  const isCompressed = manifest.compression === "zstd";
  const rows = manifest.parts.flatMap((part) => {
    const bytes = objects.get(part.path)!;
    expect(bytes.length, part.path).toBe(part.bytes);
    expect(createHash("sha256").update(bytes).digest("hex"), part.path).toBe(part.sha256);
    expect(part.path).toMatch(isCompressed ? /\.jsonl\.zst$/ : /\.jsonl$/);
    const lines = parseRows((isCompressed ? unzstd(bytes) : bytes).toString());
    expect(lines.length, part.path).toBe(part.rows);
    return lines;
  });
  expect(rows).toHaveLength(manifest.rows);
  expect([...objects.keys()].sort()).toEqual(
    [...manifest.parts.map(({ path }) => path), "manifest.json"].sort(),
  );
  return { manifest, rows };
}

export function parseRows(text: string): OutputRow[] {
  if (text === "") return [];
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as OutputRow);
}

/** Fails unless the rows are those of these items, once each, in order. `items`: by batch. */
export function expectRows(rows: readonly OutputRow[], items: readonly { id: number }[][]): void {
  const expected = items.flatMap((batch, batch_index) =>
    batch.map(({ id }, item_index) => [batch_index, item_index, id]),
  );
  const found = rows.map(({ batch_index, item_index, prediction }) => [
    batch_index,
    item_index,
    (prediction as { id: number }).id,
  ]);
  expect(found.length).toBe(expected.length);
  const wrong = found.findIndex((row, i) => row.join() !== expected[i]!.join());
  expect(
    wrong < 0 ? undefined : { at: wrong, found: found[wrong], expected: expected[wrong] },
  ).toBeUndefined();
}
