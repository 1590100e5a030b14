/**
 * BullMQ on Redis: `node bullmq_peer.mjs FILE BATCH_SIZE BATCHES [PYTHON]`, with REDIS_URL and PEERS (where it is installed),
 * prints seconds from reading to the last batch. Two worker processes, of Node, or of the Python that is named, as a predictor
 * needs them; no-op. Jobs are added a thousand at a time.
 */
import { fork, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { readBatches } from "./read_batches.mjs";

const { Queue, Worker } = createRequire(`${process.env.PEERS}/`)("bullmq");
const { hostname: host, port } = new URL(process.env.REDIS_URL);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const [path, size, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

if (process.send !== undefined) new Worker("batches", async () => null, { connection, concurrency: 50 });
else await main();

async function main() {
  const queue = new Queue("batches", { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.obliterate({ force: true });
  const python = process.argv[5];
  const workers = [1, 2].map(() =>
    python === undefined
      ? fork(new URL(import.meta.url).pathname)
      : spawn(python, [new URL("bullmq_worker.py", import.meta.url).pathname], { stdio: "ignore" }),
  );
  await queue.add("warm", {});
  await drained(queue);
  const started = performance.now();
  for await (const batches of readBatches(path, size, count))
    await queue.addBulk(batches.map((data) => ({ name: "predict", data })));
  await drained(queue);
  console.log(JSON.stringify({ batches: count, seconds: (performance.now() - started) / 1000 }));
  for (const worker of workers) worker.kill();
  process.exit(0);
}

async function drained(queue) {
  for (;;) {
    const { waiting, active } = await queue.getJobCounts("waiting", "active");
    if (waiting + active === 0) return;
    await pause(2);
  }
}
