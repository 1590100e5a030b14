/** Checks the output of one job from outside: reads the files of the store itself, by the manifest alone. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { unzstd } from "../harness/decompress.ts";
import { itemsOf, type JobPlan } from "./job-plan.ts";

interface Manifest {
  job_id: string;
  status: string;
  compression?: "zstd";
  parts: { path: string; rows: number; bytes: number; sha256: string }[];
  batches: { total: number; succeeded: number; failed: number };
  rows: number;
}

interface Row {
  batch_index: number;
  item_index: number;
  prediction: { id: number };
}

/** What is wrong with the output in this directory; `failed`: the batches that finally failed. */
export function outputFaults(directory: string, plan: JobPlan, failed: ReadonlySet<number>): string[] {
  if (!existsSync(join(directory, "manifest.json"))) return ["it has no manifest"];
  const manifest = JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8")) as Manifest;
  const total = plan.fails.length;
  const expected = { total, succeeded: total - failed.size, failed: failed.size };
  return [
    ...different("the counts of its manifest", manifest.batches, expected),
    ...misnamed(plan, manifest),
    ...orphans(directory, manifest),
    ...partFaults(directory, manifest),
    ...rowFaults(rowsOf(directory, manifest), plan, failed),
  ];
}

function different(what: string, found: unknown, expected: unknown): string[] {
  const [is, should] = [JSON.stringify(found), JSON.stringify(expected)];
  return is === should ? [] : [`${what} are ${is}, not ${should}`];
}

/** Objects that the manifest does not name, whole or in the making. */
function orphans(directory: string, { parts }: Manifest): string[] {
  const named = new Set([...parts.map(({ path }) => path), "manifest.json"]);
  const others = readdirSync(directory).filter((name) => !named.has(name));
  return others.length === 0 ? [] : [`it has orphans: ${others.join(", ")}`];
}

/** Parts whose names do not say how they are stored. */
function misnamed({ isCompressed }: JobPlan, { compression, parts }: Manifest): string[] {
  const end = isCompressed ? ".jsonl.zst" : ".jsonl";
  const others = parts.filter(({ path }) => !path.endsWith(end)).map(({ path }) => path);
  return [
    ...different("the names of its parts that do not fit", others, []),
    ...((compression === "zstd") === isCompressed ? [] : [`its compression is ${compression}`]),
  ];
}

function partFaults(directory: string, { parts }: Manifest): string[] {
  return parts.flatMap(({ path, bytes, sha256 }) => {
    if (!existsSync(join(directory, path))) return [`${path} is missing`];
    const content = readFileSync(join(directory, path));
    const found = { bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    return different(`bytes and hash of ${path}`, found, { bytes, sha256 });
  });
}

/** All rows in the order of the parts. */
function* rowsOf(directory: string, { compression, parts }: Manifest): Generator<Row> {
  for (const { path } of parts) {
    if (!existsSync(join(directory, path))) continue;
    const stored = readFileSync(join(directory, path));
    for (const line of (compression === undefined ? stored : unzstd(stored)).toString().split("\n"))
      if (line !== "") yield JSON.parse(line) as Row;
  }
}

/** The first row that is not the next one. */
function rowFaults(rows: Iterable<Row>, plan: JobPlan, failed: ReadonlySet<number>): string[] {
  const expected = expectedRows(plan, failed);
  let count = 0;
  for (const { batch_index, item_index, prediction } of rows) {
    const found = `${batch_index}/${item_index}/${prediction?.id}`;
    const next = expected.next().value ?? "no row";
    if (found !== next) return [`row ${count} is ${found}, not ${next}`];
    count++;
  }
  const missing = expected.next().value;
  return missing === undefined ? [] : [`it ends after ${count} rows, before ${missing}`];
}

/** `batch/item/id` of every row that should be there. */
function* expectedRows(plan: JobPlan, failed: ReadonlySet<number>): Generator<string, undefined> {
  for (let batch = 0; batch < plan.fails.length; batch++)
    if (!failed.has(batch))
      for (const [item, { id }] of itemsOf(plan, batch).entries()) yield `${batch}/${item}/${id}`;
}
