/**
 * A large enqueue beside real-time traffic: 10M lines and 3,000 requests a second. The gateway's event-loop delay is
 * measured from inside it; the answers' at the client; the controller's memory while the lines go from 1M to 10M.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../test/harness/eventually.ts";
import { root, TestServer } from "../test/harness/server.ts";
import { report, rssMiB } from "./measure.ts";

interface LoopDelay {
  p50_ms: number;
  p99_ms: number;
  max_ms: number;
}

export async function benchBeside(
  directory: string,
  project: Record<string, string>,
  path: string,
  lines: number,
): Promise<void> {
  const delayFile = join(directory, "loop-delay.json");
  const server = new TestServer({
    QUERN_ALLOW_LOCAL_ROOT: directory,
    QUERN_BENCH_LOOP_DELAY: delayFile,
    NODE_OPTIONS: `--import=${join(root, "bench", "loop_delay.mjs")}`,
  });
  await server.start();
  server.deploy(project);
  await besideEnqueue(server, () => readDelay(server, delayFile), path, lines);
  await server.stop();
}

/** The gateway's event-loop delay since the last reading. */
async function readDelay(server: TestServer, path: string): Promise<LoopDelay> {
  rmSync(path, { force: true });
  process.kill(server.child("gateway"), "SIGUSR2");
  await eventually("the gateway wrote its delays", () => existsSync(path) && readFileSync(path).length > 0);
  return JSON.parse(readFileSync(path, "utf8")) as LoopDelay;
}

async function besideEnqueue(
  server: TestServer,
  delaySinceLast: () => Promise<LoopDelay>,
  path: string,
  lines: number,
): Promise<void> {
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
  await delaySinceLast();
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
  const delay = await delaySinceLast();
  await server.fetch(`/noop-batch/${id}`, { method: "DELETE" });
  await eventually("the load has ended", () => output.endsWith("\n"));
  const { p50_ms, p99_ms, requests, errors } = JSON.parse(output) as Record<string, number>;
  const early = samples.find((sample) => sample.lines >= lines / 10)!.mib;
  const most = Math.max(...samples.map((sample) => sample.mib));
  console.log(
    `  ${requests} requests, ${errors} errors, p50 ${p50_ms!.toFixed(2)} ms; controller RSS ${early.toFixed(0)} MiB at ${lines / 1e7}M lines, at most ${most.toFixed(0)} MiB`,
  );
  console.log(
    `  event-loop delay of the gateway: p50 ${delay.p50_ms.toFixed(2)} ms, max ${delay.max_ms.toFixed(1)} ms`,
  );
  const beside = "beside a 10M-line enqueue, ms";
  report(`event-loop delay of the gateway, p99, ${beside}`, delay.p99_ms, "<= 10", delay.p99_ms <= 10);
  report(`answers at the client, p99, ${beside}`, p99_ms!, "<= 10", p99_ms! <= 10 && errors === 0);
  report("controller RSS while enqueuing 10M lines, MiB", most, "<= 200", most <= 200);
  report("controller RSS, most / at a tenth", most / early, "<= 1.35 (flat)", most / early <= 1.35);
}
