/**
 * Batch, two workers, no-op, from the same JSONL file to finished, beside multiprocessing.Pool; and the long tail. CPU
 * beside each rate is that of all its processes: controller and workers here, parent and children there.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../test/harness/eventually.ts";
import { root, type TestServer } from "../test/harness/server.ts";
import { cpuSeconds, median, report } from "./measure.ts";

const LOOK_EVERY_MS = 250;

interface Timed {
  seconds: number;
  cpuS: number;
}

export async function runJob(
  server: TestServer,
  path: string,
  batchSize: number,
  config: object = {},
): Promise<Timed & { enqueueS: number }> {
  const controller = server.child("controller");
  const before = cpuSeconds(controller, true);
  const replicas = server.workers().length;
  const id = await server.submit("noop-batch", {
    workers: 2,
    config,
    delimited_files: { store_paths: [`file://${path}`], batch_size: batchSize },
  });
  const job = await endOf(server, id);
  // Replicas of real-time APIs stay; the job's workers count once they have ended.
  await eventually("the job's workers have ended", () => server.workers().length === replicas);
  if (job.status !== "status_succeeded")
    throw new Error(`the job ended ${job.status}: ${job.reason?.message}`);
  const text = server.cli(["job", "logs", "noop-batch", id]).out;
  const at = (what: string) => Date.parse(new RegExp(`^(\\S+) server ${what}`, "m").exec(text)![1]!);
  const created = Date.parse((job as unknown as { created_time: string }).created_time);
  return {
    seconds: (Date.parse(job.end_time!) - created) / 1000,
    cpuS: cpuSeconds(controller, true) - before,
    enqueueS: (at("enqueued") - at("started enqueuing")) / 1000,
  };
}

/** Polls as rarely as `--watch` does: the times are the job's own, and each poll costs CPU. */
async function endOf(server: TestServer, id: string) {
  for (;;) {
    const job = await server.job("noop-batch", id);
    if (job.end_time !== undefined) return job;
    await pause(LOOK_EVERY_MS);
  }
}

function pool(path: string, batchSize: number, who: "parent" | "children"): Timed {
  const out = execFileSync("python3", [join(root, "bench", "pool_peer.py"), path, String(batchSize), who], {
    encoding: "utf8",
  });
  const { seconds, cpu_s } = JSON.parse(out) as { seconds: number; cpu_s: number };
  return { seconds, cpuS: cpu_s };
}

export async function benchBatch(
  server: TestServer,
  path: string,
  lines: number,
  rounds: number,
): Promise<void> {
  const ratios: Record<string, number[]> = { one: [], parent: [], children: [], enqueue: [] };
  for (let round = 0; round < rounds; round++) {
    const one = await runJob(server, path, 1);
    const onePool = pool(path, 1, "children");
    const hundred = await runJob(server, path, 100);
    const parent = pool(path, 100, "parent");
    const children = pool(path, 100, "children");
    ratios.one!.push(onePool.seconds / one.seconds);
    ratios.parent!.push(parent.seconds / hundred.seconds);
    ratios.children!.push(children.seconds / hundred.seconds);
    ratios.enqueue!.push(lines / hundred.enqueueS / 1e6);
    const text = (name: string, m: Timed, batches: number) =>
      `${name} ${Math.round(batches / m.seconds)}/s (${((m.cpuS / batches) * 1e6).toFixed(1)} µs CPU)`;
    console.log(
      `  1 item: ${text("quern", one, lines)}, ${text("pool", onePool, lines)} | 100 items: ${text("quern", hundred, lines / 100)}, ${text("pool, parent parses", parent, lines / 100)}, ${text("pool, children parse", children, lines / 100)} | enqueue ${(lines / hundred.enqueueS / 1e6).toFixed(2)}M lines/s`,
    );
  }
  report("batch, 1 item: rate / Pool(chunksize=1)", median(ratios.one!), ">= 4", median(ratios.one!) >= 4);
  report(
    "batch, 100 items: rate / Pool whose parent parses",
    median(ratios.parent!),
    ">= 2",
    median(ratios.parent!) >= 2,
  );
  report(
    "batch, 100 items: rate / Pool whose children parse joined bytes",
    median(ratios.children!),
    ">= 0.8",
    median(ratios.children!) >= 0.8,
  );
  report(
    "enqueue, million validated 100-byte lines a second",
    median(ratios.enqueue!),
    ">= 1.0",
    median(ratios.enqueue!) >= 1,
  );
}

/** One batch of ten seconds among 10,000 of 2 ms on two workers; the ideal is all work over two. */
export async function benchTail(server: TestServer, path: string): Promise<void> {
  const job = await runJob(server, path, 1, { slow_id: 10_005_000, slow_s: 10, short_s: 0.002 });
  const ideal = Math.max(10, (10 + 10_000 * 0.00215) / 2);
  report(
    "one 10 s batch among 10,000 short ones: seconds / ideal",
    job.seconds / ideal,
    "<= 1.2",
    job.seconds / ideal <= 1.2,
  );
}
