/**
 * Event-loop delay and memory of a test server's gateway and controller, written at its end to the file in
 * QUERN_TEST_VITALS (`npm run bench -- hostile`).
 */
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Role, TestServer } from "./server.ts";

export interface Vitals {
  role: Role;
  /** Delay of its event loop. Undefined if the test stopped the process, which would be counted. */
  delay?: {
    /** The 99th percentile in its last one or two minutes of work. */
    p99_ms: number;
    /** The largest since its start. */
    longest_ms: number;
  };
  /** Its peak memory. */
  peakMiB: number;
}

export async function noteVitals(server: TestServer): Promise<void> {
  const file = process.env.QUERN_TEST_VITALS;
  if (file === undefined) return;
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const answer = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
  // A server with an API that cannot start has none in its answer.
  const { event_loops = [] } = (await answer.json()) as {
    event_loops?: { process: Role; p99_ms: number; longest_ms: number }[];
  };
  for (const { process: role, p99_ms, longest_ms } of event_loops) {
    const vitals: Vitals = { role, peakMiB: peakMiB(server.child(role)) };
    if (!server.frozen.has(role)) vitals.delay = { p99_ms, longest_ms };
    appendFileSync(file, `${JSON.stringify(vitals)}\n`);
  }
}

function peakMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)![1]) / 1024;
}
