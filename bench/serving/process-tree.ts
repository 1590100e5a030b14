/** A process with all its descendants: CPU time, memory, end. */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpuSeconds } from "../measure.ts";

/** The process and all its descendants. */
function tree(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [pid];
  for (const at of found) for (const [child, parent] of parents) if (parent === at) found.push(child);
  return found;
}

export function treeCpuSeconds(pid: number): number {
  return tree(pid).reduce((sum, one) => sum + cpuSeconds(one, true), 0);
}

export function pssMiB(pid: number): number {
  return tree(pid).reduce((sum, one) => {
    const text = readFileSync(`/proc/${one}/smaps_rollup`, "latin1");
    return sum + Number(/^Pss:\s+(\d+) kB/m.exec(text)![1]) / 1024;
  }, 0);
}

export async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const below = tree(child.pid!);
  child.kill("SIGTERM");
  await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, 5_000))]);
  for (const pid of below) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  }
}
