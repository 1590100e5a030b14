/**
 * A large enqueue beside real-time traffic: 10M lines and 3,000 requests a second. The gateway's event-loop delay is
 * read from its own answers at a fixed rate; the controller's memory while the lines go from 1M to 10M.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { eventually } from "../test/harness/eventually.ts";
import { root, type TestServer } from "../test/harness/server.ts";
import { report, rssMiB } from "./measure.ts";

export async function benchBeside(server: TestServer, path: string, lines: number): Promise<void> {
  const controller = server.child("controller");
  const loading = spawn(
    process.execPath,
    [join(root, "bench", "load.mjs"), `${server.baseUrl}/noop`, "16", "7", "3000"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let output = "";
  loading.stdout.on("data", (text) => (output += String(text)));
  const id = await server.submit("noop-batch", {
    workers: 1,
    delimited_files: { store_paths: [`file://${path}`], batch_size: 100 },
  });
  const samples: { lines: number; mib: number }[] = [];
  await eventually(
    "all is enqueued",
    async () => {
      const job = await server.job("noop-batch", id);
      samples.push({ lines: job.batches_in_queue * 100, mib: rssMiB(controller) });
      return job.status !== "status_enqueuing";
    },
    120_000,
  );
  await server.fetch(`/noop-batch/${id}`, { method: "DELETE" });
  await eventually("the load has ended", () => output.endsWith("\n"));
  const { p50_ms, p99_ms, requests, errors } = JSON.parse(output) as Record<string, number>;
  const early = samples.find((sample) => sample.lines >= lines / 10)!.mib;
  const most = Math.max(...samples.map((sample) => sample.mib));
  console.log(
    `  ${requests} requests, ${errors} errors, p50 ${p50_ms!.toFixed(2)} ms; controller RSS ${early.toFixed(0)} MiB at ${lines / 1e7}M lines, at most ${most.toFixed(0)} MiB`,
  );
  report(
    "p99 of answers (bounds the gateway's event-loop delay) beside a 10M-line enqueue, ms",
    p99_ms!,
    "<= 10",
    p99_ms! <= 10 && errors === 0,
  );
  report("controller RSS while enqueuing 10M lines, MiB", most, "<= 200", most <= 200);
  report("controller RSS, most / at a tenth", most / early, "<= 1.35 (flat)", most / early <= 1.35);
}
