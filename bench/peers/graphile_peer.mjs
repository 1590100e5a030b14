/**
 * graphile-worker on PostgreSQL: `node graphile_peer.mjs FILE BATCH_SIZE BATCHES`, with DATABASE_URL and PEERS (where it is
 * installed), prints seconds from reading to the last batch. Two worker processes of 10 concurrent no-ops; jobs are added a
 * thousand at a time.
 */
import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { readBatches } from "./read_batches.mjs";

const require = createRequire(`${process.env.PEERS}/`);
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const connectionString = process.env.DATABASE_URL;
const logger = new Logger(() => () => {});
const [path, size, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

if (process.send !== undefined)
  await run({
    connectionString,
    logger,
    concurrency: 10,
    pollInterval: 100,
    taskList: { predict: async () => {} },
  });
else await main();

async function main() {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  const workers = [1, 2].map(() => fork(new URL(import.meta.url).pathname));
  await utils.addJob("predict", {});
  await drained(utils);
  const started = performance.now();
  for await (const batches of readBatches(path, size, count))
    await utils.addJobs(batches.map((items) => ({ identifier: "predict", payload: { items } })));
  await drained(utils);
  console.log(JSON.stringify({ batches: count, seconds: (performance.now() - started) / 1000 }));
  for (const worker of workers) worker.kill();
  process.exit(0);
}

async function drained(utils) {
  for (;;) {
    const { rows } = await utils.withPgClient((client) =>
      client.query("SELECT 1 FROM graphile_worker._private_jobs LIMIT 1"),
    );
    if (rows.length === 0) return;
    await pause(2);
  }
}
