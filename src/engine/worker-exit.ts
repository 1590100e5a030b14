/** How a worker ended, in words. */
import type { WorkerExit } from "./engine.ts";

export function describeExit(exit: WorkerExit): string {
  const { outOfMemory, peakMemoryBytes, memoryLimitBytes } = exit;
  const peak = peakMemoryBytes === undefined ? "" : ` (it was seen to use ${mib(peakMemoryBytes)})`;
  if (outOfMemory === "limit")
    return `was killed because it used ${mib(peakMemoryBytes ?? 0)}, over its compute.mem of ${mib(memoryLimitBytes ?? 0)}`;
  if (outOfMemory === "kernel") return `was killed by the kernel, which had no memory left${peak}`;
  if (exit.signal !== undefined) return `was killed by ${exit.signal}${peak}`;
  return exit.code === undefined ? "is gone" : `exited with code ${exit.code}`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / (1024 * 1024))} MiB`;
}
