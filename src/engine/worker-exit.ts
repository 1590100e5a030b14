/** Describes how a worker ended. */
import type { WorkerExit } from "./engine.ts";

/** Exit code of a worker that could not listen (python/quern_runtime/__main__.py). */
export const TEMPORARY_FAILURE = 75;

export function describeExit(exit: WorkerExit): string {
  const { outOfMemory, peakMemoryBytes, memoryLimitBytes, interruption } = exit;
  if (interruption !== undefined) return interruption;
  const peak = peakMemoryBytes === undefined ? "" : ` (its peak memory was ${mib(peakMemoryBytes)})`;
  if (outOfMemory === "limit")
    return `was killed because it ${overLimit(peakMemoryBytes ?? 0, memoryLimitBytes ?? 0)}`;
  if (outOfMemory === "kernel")
    return `was killed by the kernel, because the machine ran out of memory${peak}`;
  if (exit.signal !== undefined) return `was killed by ${exit.signal}${peak}`;
  return exit.code === undefined ? "is gone" : `exited with code ${exit.code}`;
}

/** With a kernel limit, the measured peak is below the limit. */
function overLimit(peakBytes: number, limitBytes: number): string {
  return peakBytes > limitBytes
    ? `used ${mib(peakBytes)}, over its compute.mem of ${mib(limitBytes)}`
    : `needed more than its compute.mem of ${mib(limitBytes)}`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / (1024 * 1024))} MiB`;
}
