/** How gateway and controller fare while test/hostile attacks them: the delay of their event loops, and their memory. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../test/harness/server.ts";
import type { Vitals } from "../test/harness/vitals.ts";
import { report } from "./measure.ts";

const P99_BAR_MS = 50;
const PEAK_BAR_MIB = 700;

export function benchHostile(directory: string): void {
  const all = readdirSync(join(root, "test", "hostile")).flatMap((name) => attack(name, directory));
  for (const role of ["gateway", "controller"] as const) {
    const own = all.filter((each) => each.role === role);
    const p99 = Math.max(...own.map(({ delay }) => delay?.p99_ms ?? 0));
    const peak = Math.max(...own.map(({ peakMiB }) => peakMiB));
    const has = own.length > 0;
    report(`${role}, delay of the event loop (p99), ms`, p99, `<= ${P99_BAR_MS}`, has && p99 <= P99_BAR_MS);
    report(`${role}, most memory, MiB`, peak, `<= ${PEAK_BAR_MIB}`, has && peak <= PEAK_BAR_MIB);
  }
}

/** One file of tests, alone on the machine. */
function attack(name: string, directory: string): Vitals[] {
  const file = join(directory, "hostile-vitals.jsonl");
  rmSync(file, { force: true });
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "--configLoader=runner", join("test", "hostile", name)];
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: "ignore",
    env: { ...process.env, QUERN_TEST_VITALS: file },
  });
  if (status !== 0) report(`${name}, exit code`, status ?? -1, "0", false);
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  const vitals = lines.map((line) => JSON.parse(line) as Vitals);
  for (const { role, delay, peakMiB } of vitals) {
    const told =
      delay === undefined ? "stopped by the test" : `p99 ${delay.p99_ms} ms, longest ${delay.longest_ms} ms`;
    console.log(`       ${name}: ${role} ${told}, ${peakMiB.toFixed(0)} MiB`);
  }
  return vitals;
}
