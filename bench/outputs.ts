/**
 * Jobs with output, beside the same jobs without, `multiprocessing.Pool` that writes the same files by hand, and Ray
 * Data that writes JSON; then how the output is read, and the controller's memory behind a slow batch. CPU is that of
 * controller and workers apart. Needs `node scripts/servers.mjs`; installs Ray.
 *
 * `--lines=N`: of the input; `--slow=S`: seconds of the slow batch; `--rounds=N`: of the rates, 0 leaves them out.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, TestServer } from "../test/harness/server.ts";
import { startS3 } from "../test/harness/stores.ts";
import { median, report } from "./measure.ts";
import { dropIdleConnection, outputJob, text } from "./output-jobs.ts";
import { benchReading, benchSlowBatch } from "./output-reading.ts";
import { install } from "./serving/install.ts";

export interface OutputsScale {
  /** A file of so many lines of 100 bytes. */
  lines: number;
  path: string;
  rounds: number;
  /** Seconds for which the first of `lines` batches keeps its worker. */
  slowS: number;
}

/**
 * Returns its items, or a label for each: JSON of 100 bytes. An item has four floats, a label one, and floats are what
 * takes the encoder long.
 */
const ECHO = `
import time
class PythonPredictor:
    def __init__(self, config):
        self.slow_s = config.get("slow_s")
        self.is_label = config.get("label")
    def predict(self, payload):
        if self.slow_s is not None and payload[0]["id"] == 10_000_000:
            time.sleep(self.slow_s)
        return [self.label(item["id"]) for item in payload] if self.is_label else payload
    def label(self, item_id):
        return {"id": item_id, "label": "setosa", "confidence": 0.97, "reason": "%-36s" % "petal length"}
`;
const PROJECT = {
  "predictor.py": ECHO,
  "quern.yaml": "- name: echo-batch\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
};

export async function benchOutputs(directory: string, scale: OutputsScale): Promise<void> {
  const out = join(directory, "outputs");
  mkdirSync(out, { recursive: true });
  const s3 = await startS3();
  const server = new TestServer({ ...s3.env, QUERN_ALLOW_LOCAL_ROOT: directory });
  try {
    await server.start();
    server.deploy(PROJECT);
    if (scale.rounds > 0) await benchAllRates(server, directory, out, s3.base, scale);
    await benchReading(server, out, scale);
    await benchSlowBatch(server, out, scale);
  } finally {
    await server.stop();
    await s3.stop();
    rmSync(out, { recursive: true, force: true });
  }
}

async function benchAllRates(
  server: TestServer,
  directory: string,
  out: string,
  s3: string,
  scale: OutputsScale,
): Promise<void> {
  for (const batchSize of [100, 1]) {
    const rate = await benchRates(server, out, s3, scale, batchSize);
    const ratio = rate / rayRate(directory, scale.path, batchSize, join(out, "ray"));
    report(`output, ${batchSize} a batch: rate / Ray Data that writes JSON`, ratio, ">= 15", ratio >= 15);
    await dropIdleConnection(server);
  }
  await benchLabels(server, out, scale);
}

/** Returns the items a second with output to a directory. */
async function benchRates(
  server: TestServer,
  out: string,
  s3: string,
  { lines, path, rounds }: OutputsScale,
  batchSize: number,
): Promise<number> {
  const ratios = { directory: [] as number[], s3: [] as number[], pool: [] as number[] };
  const rates: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const job = { path, batchSize };
    const without = await outputJob(server, job);
    const local = await outputJob(server, { ...job, output: `file://${out}` });
    const remote = await outputJob(server, { ...job, output: `${s3}/out` });
    const pool = poolSeconds(path, batchSize, join(out, "pool"));
    await dropIdleConnection(server);
    rates.push(lines / local.seconds);
    ratios.directory.push(without.seconds / local.seconds);
    ratios.s3.push(without.seconds / remote.seconds);
    ratios.pool.push(pool.seconds / local.seconds);
    console.log(
      `  ${batchSize} a batch: ${text("without", without, lines)}, ${text("directory", local, lines)}, ${text("S3", remote, lines)}, Pool ${Math.round(lines / pool.seconds)} items/s (${((pool.cpu_s / lines) * 1e6).toFixed(2)} µs CPU)`,
    );
  }
  const [bar, name] = [batchSize === 1 ? 0.35 : 0.6, `output, ${batchSize} a batch: rate`];
  for (const [store, values] of [
    ["a directory", ratios.directory],
    ["S3", ratios.s3],
  ] as const)
    report(`${name} to ${store} / without`, median(values), `>= ${bar}`, median(values) >= bar);
  report(`${name} / Pool that writes the same files`, median(ratios.pool), ">= 1", median(ratios.pool) >= 1);
  return median(rates);
}

/** The same with predictions of one float. No bar: it says how much of the cost is that of the encoder. */
async function benchLabels(server: TestServer, out: string, { lines, path }: OutputsScale): Promise<void> {
  const job = { path, batchSize: 100, config: { label: true } };
  const without = await outputJob(server, job);
  const local = await outputJob(server, { ...job, output: `file://${out}` });
  console.log(
    `  labels: ${text("without", without, lines)}, ${text("directory", local, lines)}, ratio ${(without.seconds / local.seconds).toFixed(2)}`,
  );
}

/** Items a second of Ray Data: over fewer lines, because it takes a hundred times as long. */
function rayRate(directory: string, path: string, batchSize: number, out: string): number {
  const lines = batchSize === 1 ? 20_000 : 400_000;
  const python = join(install(directory, "ray", ["ray[data]"]), "python");
  const command = [
    join(root, "bench", "outputs", "ray_writer.py"),
    path,
    String(batchSize),
    String(lines),
    out,
  ];
  const env = { ...process.env, RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: "0" };
  const printed = execFileSync(python, command, {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  rmSync(out, { recursive: true });
  const { seconds } = JSON.parse(printed.trim().split("\n").at(-1)!) as { seconds: number };
  console.log(`  Ray Data: ${Math.round(lines / seconds)} items/s`);
  return lines / seconds;
}

function poolSeconds(path: string, batchSize: number, out: string): { seconds: number; cpu_s: number } {
  const script = join(root, "bench", "outputs", "pool_writer.py");
  const printed = execFileSync("python3", [script, path, String(batchSize), out], { encoding: "utf8" });
  rmSync(out, { recursive: true });
  return JSON.parse(printed) as { seconds: number; cpu_s: number };
}
