/** What gateway and controller of a test's server went through, noted at its end where QUERN_TEST_VITALS names a file (`npm run bench -- hostile`). */
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestServer } from "./server.ts";

export interface Vitals {
  role: "gateway" | "controller";
  /** Delay of its event loop in its last one or two minutes of work, of which 99 of 100 looks saw less. */
  p99_ms: number;
  /** The largest since its start. */
  longest_ms: number;
  /** The most memory that it had. */
  peakMiB: number;
}

export async function noteVitals(server: TestServer): Promise<void> {
  const file = process.env.QUERN_TEST_VITALS;
  if (file === undefined) return;
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const answer = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
  const { event_loops } = (await answer.json()) as {
    event_loops: { process: Vitals["role"]; p99_ms: number; longest_ms: number }[];
  };
  for (const { process: role, p99_ms, longest_ms } of event_loops) {
    const vitals: Vitals = { role, p99_ms, longest_ms, peakMiB: peakMiB(server.child(role)) };
    appendFileSync(file, `${JSON.stringify(vitals)}\n`);
  }
}

function peakMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)![1]) / 1024;
}
