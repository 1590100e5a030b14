/** Real-time, no-op predictor, one worker, beside the bare node:http echo: rates and CPU a request, interleaved. */
import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { root, type TestServer } from "../test/harness/server.ts";
import { cpuSeconds, median, report } from "./measure.ts";

const SECONDS = 3;
const CONNECTIONS = 64;

interface Load {
  requests: number;
  seconds: number;
  errors: number;
  p50_ms: number;
  p99_ms: number;
}

function load(url: string, connections: number, seconds: number, rate?: number): Load {
  const args = [
    join(root, "bench", "load.mjs"),
    url,
    String(connections),
    String(seconds),
    ...(rate === undefined ? [] : [String(rate)]),
  ];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as Load;
}

export async function benchRealtime(server: TestServer, rounds: number): Promise<void> {
  const bare = spawn(process.execPath, [join(root, "bench", "bare_echo.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await new Promise<string>((resolve) =>
    bare.stdout.once("data", (text) => resolve(String(text).trim())),
  );
  const gateway = server.child("gateway");
  const rates: number[] = [];
  const cpus: number[] = [];
  const measure = (pid: number, url: string) => {
    const before = cpuSeconds(pid);
    const { requests, seconds, errors, p50_ms, p99_ms } = load(url, CONNECTIONS, SECONDS);
    if (errors > 0) throw new Error(`${errors} errors at ${url}`);
    return { rate: requests / seconds, cpuUs: ((cpuSeconds(pid) - before) / requests) * 1e6, p50_ms, p99_ms };
  };
  measure(gateway, `${server.baseUrl}/noop`);
  for (let round = 0; round < rounds; round++) {
    const ours = measure(gateway, `${server.baseUrl}/noop`);
    const limit = measure(bare.pid!, `http://127.0.0.1:${port}/`);
    rates.push(ours.rate / limit.rate);
    cpus.push(ours.cpuUs / limit.cpuUs);
    const text = (m: typeof ours) =>
      `${Math.round(m.rate)} req/s, ${m.cpuUs.toFixed(1)} µs CPU, p50 ${m.p50_ms.toFixed(2)} p99 ${m.p99_ms.toFixed(1)} ms`;
    console.log(`  quern ${text(ours)} | bare ${text(limit)}`);
  }
  bare.kill();
  report("real-time rate / bare node:http", median(rates), ">= 0.75", median(rates) >= 0.75);
  report("gateway CPU a request / bare node:http", median(cpus), "<= 1.3", median(cpus) <= 1.3);
}
