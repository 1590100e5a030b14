/** How a worker in a pod ended, in the words of the engine's port. Pure. */
import type { WorkerExit } from "../../engine/engine.ts";
import type { LastExit, LauncherNote } from "../../kubernetes/pods/launcher.ts";
import type { DeliveryNote } from "../../protocol/delivery-note.ts";

export interface ExitFacts {
  /** Undefined if the launcher knows of none. */
  exit: LastExit | undefined;
  /** Quern has killed the process, and it was alive. */
  isKilledByUs: boolean;
  /** Why the whole container ended, in the kubelet's word, if the worker ended with it. */
  containerEnd: string | undefined;
  memoryLimitBytes: number | undefined;
}

export function workerExit({ exit, isKilledByUs, containerEnd, memoryLimitBytes }: ExitFacts): WorkerExit {
  const { code, signal, out_of_memory, peak_memory_bytes, last_lines, with_container } = exit ?? {};
  const isOutOfMemory = out_of_memory === true || containerEnd === "OOMKilled";
  return {
    ...(code === undefined ? {} : { code }),
    ...(signal === undefined ? {} : { signal }),
    ...(isOutOfMemory ? { outOfMemory: "limit" } : {}),
    ...(peak_memory_bytes === undefined ? {} : { peakMemoryBytes: peak_memory_bytes }),
    ...(memoryLimitBytes === undefined ? {} : { memoryLimitBytes }),
    ...(last_lines === undefined ? {} : { lastLines: last_lines }),
    ...(isKilledByUs && !isOutOfMemory ? { interruption: "was ended by Quern" } : {}),
    // A kubelet that restarts, or somebody who kills the container: nothing says that the batch did it.
    ...(with_container === true && !isOutOfMemory ? { interruption: withContainer(containerEnd) } : {}),
  };
}

function withContainer(containerEnd: string | undefined): string {
  return `ended with its container${containerEnd === undefined ? "" : ` (${containerEnd})`}`;
}

/** Undefined if the worker made no note. When its user code began is not known here. */
export function noteOf(note: LauncherNote | null | undefined): DeliveryNote | undefined {
  if (note === null || note === undefined) return undefined;
  const { epoch, connection, delivery, batch_index, busy } = note;
  return { epoch, connection, delivery, batch_index, busy, since: 0n };
}
