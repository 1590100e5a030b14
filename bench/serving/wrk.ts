/** Load by wrk, and at a fixed rate. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../test/harness/server.ts";
import { treeCpuSeconds } from "./process-tree.ts";

const SECONDS = 4;

export interface Load {
  rate: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU seconds of all its processes for a thousand requests. */
  cpuPer1k: number;
}

export async function wrk(
  directory: string,
  url: string,
  payload: unknown,
  pid: number,
  connections = 64,
): Promise<Load> {
  const script = join(directory, "post.lua");
  writeFileSync(
    script,
    `wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[${JSON.stringify(payload)}]]\n`,
  );
  const before = treeCpuSeconds(pid);
  const out = execFileSync(
    "wrk",
    [
      "-t",
      "1",
      "-c",
      String(connections),
      "-d",
      `${SECONDS}s`,
      "--latency",
      "--timeout",
      "30s",
      "-s",
      script,
      url,
    ],
    { encoding: "utf8" },
  );
  const spent = treeCpuSeconds(pid) - before;
  if (/Non-2xx|Socket errors/.test(out)) throw new Error(`errors at ${url}:\n${out}`);
  const requests = Number(/(\d+) requests in/.exec(out)![1]);
  const percentile = (name: string) => {
    const [, value, unit] = new RegExp(`${name}%\\s+([\\d.]+)(us|ms|s)`).exec(out)!;
    return Number(value) * { us: 0.001, ms: 1, s: 1000 }[unit as "us" | "ms" | "s"];
  };
  const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(out)![1]);
  return { rate, p50Ms: percentile("50"), p99Ms: percentile("99"), cpuPer1k: (spent / requests) * 1000 };
}

export function fixedRate(url: string, rate: number): { p50_ms: number; p99_ms: number } {
  const args = [join(root, "bench", "load.mjs"), url, "16", String(SECONDS), String(rate)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as {
    p50_ms: number;
    p99_ms: number;
  };
}

export async function rounds<Result>(count: number, once: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let round = 0; round < count; round++) results.push(await once());
  return results;
}

export function tell(name: string, { rate, p50Ms, p99Ms, cpuPer1k }: Load): void {
  console.log(
    `  ${name}: ${rate.toFixed(0)} req/s, p50 ${p50Ms.toFixed(2)} p99 ${p99Ms.toFixed(1)} ms, ${cpuPer1k.toFixed(3)} CPU s per 1,000`,
  );
}
