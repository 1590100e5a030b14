/** The most memory that a process has held at once, as Linux keeps it. */
import { readFileSync, writeFileSync } from "node:fs";

/** The peak of the resident set since the last reset, in MiB. */
export function peakMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) / 1024;
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
