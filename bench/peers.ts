/**
 * The same no-op job on the usual tools: Ray Data, Celery on Redis, BullMQ, graphile-worker; two workers each, from the
 * file to the last batch. Peers are installed into `.bench/peers`; Redis and PostgreSQL must be there (Debian: redis-server,
 * postgresql).
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../test/harness/eventually.ts";
import { freePort } from "../test/harness/faulty-proxy.ts";
import { startPostgres } from "../test/harness/postgres.ts";
import { root, type TestServer } from "../test/harness/server.ts";
import { runJob } from "./batch.ts";
import { median, report } from "./measure.ts";

interface Peer {
  name: string;
  command: string;
  script: string;
  /** Behind the file and the counts. */
  more: readonly string[];
  /** The required ratio of our rate to theirs, at 1 and at 100 items a batch. */
  atOne: number;
  atHundred: number;
  /** The number of its batches: enough for a steady rate, few enough to finish. */
  batchesOfOne: number;
  batchesOfHundred: number;
}

const ROUNDS = 3;

/** `path` has a million lines; `longPath`, five million: their workers run already, ours start with the job. */
export async function benchPeers(
  server: TestServer,
  directory: string,
  path: string,
  longPath: string,
): Promise<void> {
  const installed = installPeers(join(directory, "peers"));
  const redis = await startRedis();
  const postgres = await startPostgres();
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    DATABASE_URL: postgres.url,
    PEERS: join(installed, "node"),
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: "0",
  };
  const run = (peer: Peer, size: number, batches: number): number => {
    const script = join(root, "bench", "peers", peer.script);
    const out = execFileSync(peer.command, [script, path, String(size), String(batches), ...peer.more], {
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const line = out.trim().split("\n").at(-1)!;
    return (JSON.parse(line) as { seconds: number }).seconds;
  };
  try {
    const ours = { one: [] as number[], hundred: [] as number[], four: [] as number[] };
    for (let round = 0; round < ROUNDS; round++) {
      ours.one.push(1_000_000 / (await runJob(server, path, 1)).seconds);
      ours.hundred.push(50_000 / (await runJob(server, longPath, 100)).seconds);
      ours.four.push(await fourBatches(server));
    }
    const [one, hundred, four] = [median(ours.one), median(ours.hundred), median(ours.four)];
    console.log(
      `  quern: ${one.toFixed(0)}/s, ${hundred.toFixed(0)}/s of 100, four batches ${four.toFixed(2)} s`,
    );
    for (const peer of peers(installed)) {
      const rateOne = peer.batchesOfOne / run(peer, 1, peer.batchesOfOne);
      const rateHundred = peer.batchesOfHundred / run(peer, 100, peer.batchesOfHundred);
      const peerFour = run(peer, 1, 4);
      console.log(
        `  ${peer.name}: ${rateOne.toFixed(0)}/s, ${rateHundred.toFixed(0)}/s of 100, four batches ${peerFour.toFixed(2)} s`,
      );
      const [r1, r100] = [one / rateOne, hundred / rateHundred];
      report(`batch, 1 item: rate / ${peer.name}`, r1, `>= ${peer.atOne}`, r1 >= peer.atOne);
      report(`batch, 100 items: rate / ${peer.name}`, r100, `>= ${peer.atHundred}`, r100 >= peer.atHundred);
    }
  } finally {
    redis.stop();
    postgres.stop();
  }
}

/** From the submission to the end, including the start of workers. */
async function fourBatches(server: TestServer): Promise<number> {
  const started = performance.now();
  const items = [1, 2, 3, 4];
  const id = await server.submit("noop-batch", { workers: 2, item_list: { items, batch_size: 1 } });
  await server.ended("noop-batch", id);
  return (performance.now() - started) / 1000;
}

function peers(installed: string): Peer[] {
  const python = join(installed, "python", "bin", "python");
  const peer = (
    name: string,
    [command, script, ...more]: [string, string, ...string[]],
    [atOne, atHundred]: [number, number],
    [batchesOfOne, batchesOfHundred]: [number, number],
  ) => ({ name, command, script, more, atOne, atHundred, batchesOfOne, batchesOfHundred });
  return [
    peer("Ray Data", [python, "ray_peer.py"], [100, 10], [10_000, 5_000]),
    peer("Celery + Redis", [python, "celery_peer.py"], [100, 10], [10_000, 5_000]),
    peer("BullMQ, Python workers", [process.execPath, "bullmq_peer.mjs", python], [30, 5], [20_000, 5_000]),
    peer("BullMQ, Node workers", [process.execPath, "bullmq_peer.mjs"], [30, 5], [50_000, 10_000]),
    peer("graphile-worker", [process.execPath, "graphile_peer.mjs"], [10, 5], [50_000, 10_000]),
  ];
}

function installPeers(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  if (!existsSync(join(directory, "node", "node_modules", "bullmq"))) {
    mkdirSync(join(directory, "node"), { recursive: true });
    run(
      "npm",
      "install",
      "--prefix",
      join(directory, "node"),
      "--no-save",
      "--no-package-lock",
      "bullmq",
      "graphile-worker",
      "ioredis",
    );
  }
  const python = join(directory, "python");
  if (!existsSync(join(python, "bin", "celery"))) {
    run("python3", "-m", "venv", python);
    run(join(python, "bin", "pip"), "install", "-q", "ray[data]", "celery", "redis", "bullmq");
  }
  return directory;
}

async function startRedis(): Promise<{ url: string; stop: () => void }> {
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", args, { stdio: "ignore" });
  const answers = () =>
    execFileSync("redis-cli", ["-p", String(port), "ping"], { encoding: "utf8" }).includes("PONG");
  await eventually("Redis answers", () => {
    try {
      return answers();
    } catch {
      return false;
    }
  });
  return { url: `redis://127.0.0.1:${port}`, stop: () => void child.kill() };
}
