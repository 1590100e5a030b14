/**
 * S3 through a real server: a million keys in a thousand folders, listed by one prefix and by a thousand; an object of
 * 5 GiB, enqueued and dispatched without a copy. CPU and memory of the controller.
 */
import { createWriteStream, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { eventually } from "../test/harness/eventually.ts";
import { TestServer } from "../test/harness/server.ts";
import { startS3 } from "../test/harness/stores.ts";
import { cpuSeconds, report, rssMiB } from "./measure.ts";

const FOLDERS = 1000;
const KEYS_A_FOLDER = 1000;
const KEYS = FOLDERS * KEYS_A_FOLDER;
const OBJECT_BYTES = 5 * 1024 ** 3;
const LINE_BYTES = 1024;

export async function benchS3(project: Record<string, string>): Promise<void> {
  const s3 = await startS3();
  const server = new TestServer(s3.env);
  await server.start();
  server.deploy(project);
  try {
    makeKeys(s3.directory);
    const folders = Array.from(
      { length: FOLDERS },
      (_, i) => `s3://bucket/keys/f${String(i).padStart(4, "0")}/`,
    );
    await benchListing(server, "by one prefix", ["s3://bucket/keys/"]);
    await benchListing(server, "by a thousand prefixes", folders);
    await benchObject(server, join(s3.directory, "lines.jsonl"));
  } finally {
    await server.stop();
    await s3.stop();
  }
}

function makeKeys(bucket: string): void {
  for (let folder = 0; folder < FOLDERS; folder++) {
    const directory = join(bucket, "keys", `f${String(folder).padStart(4, "0")}`);
    mkdirSync(directory, { recursive: true });
    for (let key = 0; key < KEYS_A_FOLDER; key++)
      writeFileSync(join(directory, `image_${String(key).padStart(4, "0")}.jpg`), "");
  }
}

async function benchListing(server: TestServer, name: string, store_paths: string[]): Promise<void> {
  const job = { workers: 1, file_path_lister: { store_paths, includes: ["**.jpg"], batch_size: 100 } };
  const { seconds, cpu, rss } = await enqueued(server, job, KEYS / 100);
  console.log(`  ${name}: ${(KEYS / seconds / 1000).toFixed(0)}k keys/s, ${seconds.toFixed(1)} s`);
  report(`CPU a key, a million keys of S3, ${name}, µs`, (cpu / KEYS) * 1e6, "<= 15", cpu / KEYS <= 15e-6);
  report("controller RSS meanwhile, MiB", rss, "<= 256", rss <= 256);
}

async function benchObject(server: TestServer, file: string): Promise<void> {
  const line = `{"id":"${"x".repeat(LINE_BYTES - 10)}"}\n`;
  const block = Buffer.from(line.repeat(1024));
  const out = createWriteStream(file);
  for (let bytes = 0; bytes < OBJECT_BYTES; bytes += block.length)
    if (!out.write(block)) await new Promise((resolve) => out.once("drain", () => resolve(undefined)));
  out.end();
  await finished(out);
  await server.fetch("/-/livez").catch(() => {});
  const batches = Math.ceil(statSync(file).size / LINE_BYTES / 100);
  const job = { workers: 2, delimited_files: { store_paths: ["s3://bucket/lines.jsonl"], batch_size: 100 } };
  const { id, seconds, cpu, rss } = await enqueued(server, job, batches);
  console.log(`  5 GiB enqueued: ${(OBJECT_BYTES / seconds / 1e6).toFixed(0)} MB/s, ${cpu.toFixed(1)} s CPU`);
  const started = performance.now();
  let most = rss;
  await eventually(
    "the job ends",
    async () => {
      most = Math.max(most, rssMiB(server.child("controller")));
      return (await server.job("noop-batch", id)).end_time !== undefined;
    },
    600_000,
  );
  const { status } = await server.job("noop-batch", id);
  const ran = (performance.now() - started) / 1000;
  console.log(`  5 GiB dispatched: ${(OBJECT_BYTES / ran / 1e6).toFixed(0)} MB/s (${status})`);
  report(
    "controller RSS over an object of 5 GiB, MiB",
    most,
    "<= 200",
    most <= 200 && status === "status_succeeded",
  );
  const copied = statSync(join(server.dataDir, "jobs", id, "items.jsonl")).size;
  report("bytes of it copied", copied, "= 0", copied === 0);
}

/** Submits, and waits until all is enqueued. */
async function enqueued(server: TestServer, job: Record<string, unknown>, batches: number) {
  const controller = server.child("controller");
  const cpuBefore = cpuSeconds(controller);
  const started = performance.now();
  const id = await server.submit("noop-batch", job);
  let rss = 0;
  await eventually(
    "all is enqueued",
    async () => {
      rss = Math.max(rss, rssMiB(controller));
      return (await server.job("noop-batch", id)).status !== "status_enqueuing";
    },
    300_000,
  );
  const seconds = (performance.now() - started) / 1000;
  const { total_batch_count } = await server.job("noop-batch", id);
  if (total_batch_count !== batches)
    throw new Error(`${total_batch_count} batches were enqueued, not ${batches}`);
  return { id, seconds, cpu: cpuSeconds(controller) - cpuBefore, rss };
}
