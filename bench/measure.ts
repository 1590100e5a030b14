/** Shared by the benchmarks: CPU and memory of processes, medians, files of lines, and reports of required figures. */
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, statSync, writeSync } from "node:fs";

const TICKS_PER_S = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** CPU seconds, user and system, of a process; on request with those of its children that have ended. */
export function cpuSeconds(pid: number, withEndedChildren = false): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ended = withEndedChildren ? Number(fields[13]) + Number(fields[14]) : 0;
  return (Number(fields[11]) + Number(fields[12]) + ended) / TICKS_PER_S;
}

/** Resident memory of a process in MiB. */
export function rssMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]) / 1024;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!;
}

/** A file of `count` lines of 100 bytes each, made once. */
export function linesFile(path: string, count: number): string {
  if (existsSync(path) && statSync(path).size === count * 100) return path;
  const file = openSync(path, "w");
  for (let at = 0; at < count; at += 10_000) {
    let block = "";
    for (let i = at; i < Math.min(count, at + 10_000); i++) {
      block += `{"id":${10_000_000 + i},"sepal_length":5.2,"sepal_width":3.6,"petal_length":1.4,"petal_width":0.3,"s":"abcd"}\n`;
    }
    writeSync(file, block);
  }
  closeSync(file);
  return path;
}

interface Bar {
  what: string;
  value: number;
  holds: boolean;
  bar: string;
}
const bars: Bar[] = [];

/** Prints a figure beside the bar that it has to reach. */
export function report(what: string, value: number, bar: string, holds: boolean): void {
  bars.push({ what, value, holds, bar });
  console.log(`${holds ? "holds" : "FAILS"}  ${what}: ${value.toPrecision(4)} (bar: ${bar})`);
}

/** True when every bar was reached. */
export function allHold(): boolean {
  const failed = bars.filter((bar) => !bar.holds);
  console.log(`\n${bars.length - failed.length} of ${bars.length} bars hold`);
  return failed.length === 0;
}
