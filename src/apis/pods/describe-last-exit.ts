/** How a pod's worker ended, as its launcher tells it. Pure. */
import { describeExit } from "../../engine/worker-exit.ts";
import type { LastExit } from "../../kubernetes/pods/launcher.ts";

/** A clause, such as `exited with code 1`. */
export function describeLastExit(exit: LastExit): string {
  const { code, signal, out_of_memory, with_container, peak_memory_bytes: peak } = exit;
  if (out_of_memory === true) {
    const used = peak === undefined ? "" : ` (its peak memory was ${Math.round(peak / 1024 / 1024)} MiB)`;
    return `was killed because it needed more memory than its compute.mem${used}`;
  }
  if (with_container === true) return "ended with its container";
  return describeExit({
    ...(code === undefined ? {} : { code }),
    ...(signal === undefined ? {} : { signal }),
    ...(peak === undefined ? {} : { peakMemoryBytes: peak }),
  });
}
