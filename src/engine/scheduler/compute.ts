/** Amounts of compute, and how they are added and compared. Pure. */

/** CPUs in thousandths, memory in bytes, and a number of GPUs. */
export interface Compute {
  cpuMillis: number;
  memoryBytes: number;
  gpus: number;
}

export const NO_COMPUTE: Readonly<Compute> = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
const PARTS = ["cpuMillis", "memoryBytes", "gpus"] as const;

/** A resource that is not requested does not have to be available. */
export function fits(need: Compute, free: Compute): boolean {
  return PARTS.every((part) => need[part] <= Math.max(0, free[part]));
}

export function isEqual(a: Compute, b: Compute): boolean {
  return PARTS.every((part) => a[part] === b[part]);
}

/** Part by part. */
export function combine(
  a: Compute,
  b: Compute,
  how: (a: number, b: number, part: keyof Compute) => number,
): Compute {
  return {
    cpuMillis: how(a.cpuMillis, b.cpuMillis, "cpuMillis"),
    memoryBytes: how(a.memoryBytes, b.memoryBytes, "memoryBytes"),
    gpus: how(a.gpus, b.gpus, "gpus"),
  };
}

export function plus(a: Compute, b: Compute): Compute {
  return combine(a, b, (x, y) => x + y);
}

export function minus(a: Compute, b: Compute): Compute {
  return combine(a, b, (x, y) => x - y);
}

/** Whether `compute` has some of what `need` lacks. */
export function helps(compute: Compute, need: Compute, free: Compute): boolean {
  return PARTS.some((part) => need[part] > Math.max(0, free[part]) && compute[part] > 0);
}

const TIMES_MAX = 1000;

/** How often `need` fits into `has`; at most a thousand. */
export function timesIn(has: Compute, need: Compute): number {
  const times = combine(has, need, (had, needed) => (needed === 0 ? TIMES_MAX : Math.floor(had / needed)));
  return Math.max(0, Math.min(TIMES_MAX, times.cpuMillis, times.memoryBytes, times.gpus));
}
