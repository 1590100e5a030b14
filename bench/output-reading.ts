/** How fast an output is read through the server, and the controller's memory while results wait for a slow batch. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { root, type TestServer } from "../test/harness/server.ts";
import { cpuSeconds, report, rssMiB } from "./measure.ts";
import { dropIdleConnection, outputJob } from "./output-jobs.ts";

interface Reading {
  lines: number;
  path: string;
  slowS: number;
}

/** What the client in outputs/reader.mjs prints. */
interface Read {
  bytes: number;
  rows: number;
  first_ms: number;
  seconds: number;
  controller_mib: number;
}

/** The rows of a job that has ended, from its parts in a directory. */
export async function benchReading(server: TestServer, out: string, { lines, path }: Reading): Promise<void> {
  const { id } = await outputJob(server, { path, batchSize: 100, output: `file://${out}` });
  const controller = server.child("controller");
  const [cpuBefore, rssBefore] = [cpuSeconds(controller), rssMiB(controller)];
  const url = `${server.baseUrl}/echo-batch/${id}/results`;
  const script = join(root, "bench", "outputs", "reader.mjs");
  const read = JSON.parse(
    execFileSync(process.execPath, [script, url, String(controller)], { encoding: "utf8" }),
  ) as Read;
  await dropIdleConnection(server);
  if (read.rows !== lines) throw new Error(`${read.rows} rows of ${lines} were read`);
  const cpu = cpuSeconds(controller) - cpuBefore;
  const rate = read.bytes / read.seconds / 1e6;
  console.log(
    `  results: ${(read.bytes / 1e6).toFixed(0)} MB, ${((cpu / read.bytes) * 1e12).toFixed(0)} µs CPU of the controller a MB`,
  );
  report("results from a directory, MB/s", rate, ">= 100", rate >= 100);
  report("first row of the results, ms", read.first_ms, "<= 100", read.first_ms <= 100);
  const growth = read.controller_mib - rssBefore;
  report("growth of the controller's RSS meanwhile, MiB", growth, "<= 64", growth <= 64);
}

/** The first batch is slow, and all others wait for it: on the disk, not in memory. */
export async function benchSlowBatch(
  server: TestServer,
  out: string,
  { lines, path, slowS }: Reading,
): Promise<void> {
  const controller = server.child("controller");
  let most = 0;
  const job = { path, batchSize: 1, output: `file://${out}`, config: { slow_s: slowS } };
  const { seconds } = await outputJob(server, job, () => {
    most = Math.max(most, rssMiB(controller));
  });
  console.log(`  ${lines} batches behind one of ${slowS} s: ${seconds.toFixed(1)} s`);
  report("controller's RSS behind a slow batch, MiB", most, "<= 250", most <= 250);
}
