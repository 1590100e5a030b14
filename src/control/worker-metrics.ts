/** Metrics about the memory of workers, by API: there may be many workers, and each has a new name. */
import type { Family, Sample } from "../observe/exposition.ts";

export interface WorkerInMemory {
  api: string;
  /** Resident memory of the worker and its children. */
  bytes: number;
  /** Its share of `compute.mem`; undefined is none. */
  limitBytes: number | undefined;
}

/** Name, type and help, as in metrics.ts. */
export const WORKER_METRICS = {
  quern_worker_memory_bytes: [
    "gauge",
    "memory of an API's workers and their children together, of replicas and of jobs; Linux only",
  ],
  quern_worker_memory_max_bytes: ["gauge", "memory of the worker that uses most; Linux only"],
  quern_worker_memory_used_ratio: [
    "gauge",
    "share of its limit (compute.mem) that the worker closest to it uses; Linux only",
  ],
} as const satisfies Record<string, readonly [Family["type"], string]>;

/** Few for each API, whatever the number of its workers. */
export function workerSamples(
  workers: readonly WorkerInMemory[],
): Record<keyof typeof WORKER_METRICS, Sample[]> {
  const apis = new Map<string, WorkerInMemory[]>();
  for (const worker of workers) apis.set(worker.api, [...(apis.get(worker.api) ?? []), worker]);
  const each = (read: (workers: readonly WorkerInMemory[]) => number | undefined): Sample[] =>
    [...apis].flatMap(([api, theirs]) => {
      const value = read(theirs);
      return value === undefined ? [] : [{ labels: { api }, value }];
    });
  return {
    quern_worker_memory_bytes: each((theirs) => theirs.reduce((sum, { bytes }) => sum + bytes, 0)),
    quern_worker_memory_max_bytes: each((theirs) => Math.max(...theirs.map(({ bytes }) => bytes))),
    quern_worker_memory_used_ratio: each(closestToLimit),
  };
}

/** Undefined if none of them has a limit. */
function closestToLimit(workers: readonly WorkerInMemory[]): number | undefined {
  const shares = workers.flatMap(({ bytes, limitBytes }) =>
    limitBytes === undefined ? [] : [bytes / limitBytes],
  );
  return shares.length === 0 ? undefined : Math.max(...shares);
}
