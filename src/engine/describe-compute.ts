/**
 * Describes compute in words: what is needed, how much exists, who holds it, and what to do. Only an administrator may
 * read who holds it, because these are APIs and jobs of others.
 */
import type { Reservation } from "./reservations.ts";
import type { Holding } from "./scheduler/claims.ts";
import type { Compute } from "./scheduler/compute.ts";

/** Only the largest holders, so that the message stays one sentence. */
const HOLDERS_SHOWN = 5;

export interface ComputeState {
  total: Compute;
  /** May be negative. */
  free: Compute;
  held: ReadonlyMap<Reservation, Holding>;
}

/** Names who holds the compute if `withNames`. */
export function describeCompute(
  need: Compute,
  { total, free, held }: ComputeState,
  withNames: boolean,
): string {
  const amounts = (compute: Compute) => amountsOf(compute, need.gpus > 0);
  const shown = amounts({ ...free, memoryBytes: Math.max(1, free.memoryBytes) });
  const who = withNames ? holders(held) : "";
  return `each takes ${amounts(need)}; ${shown} of ${amounts(total)} are free${who}${cure(need, total, free)}`;
}

/** The largest holders, each with the sum of its reservations. */
function holders(held: ReadonlyMap<Reservation, Holding>): string {
  const reservations = new Map<string, Reservation[]>();
  for (const [reservation, { by }] of held)
    reservations.set(by.holder, [...(reservations.get(by.holder) ?? []), reservation]);
  const sums = [...reservations].map(([holder, theirs]) => [holder, sumOf(theirs)] as const);
  const most = sums.sort(([, a], [, b]) => b.gpus - a.gpus || b.cpuMillis - a.cpuMillis);
  const inWords = (holder: string, sum: Compute) => `${holder} (${amountsOf(sum, sum.gpus > 0)})`;
  const shown = most.slice(0, HOLDERS_SHOWN).map(([holder, sum]) => inWords(holder, sum));
  const others = most.slice(HOLDERS_SHOWN);
  const rest = sumOf(others.flatMap(([holder]) => reservations.get(holder)!));
  const more = others.length > 0 ? [inWords(`${others.length} more`, rest)] : [];
  return shown.length === 0 ? "" : `; reserved by ${[...shown, ...more].join(", ")}`;
}

/** Empty if it fits, or if only GPUs are missing: the server cannot offer more of them than the machine has. */
function cure(need: Compute, total: Compute, free: Compute): string {
  const isOver = (limit: Compute, part: keyof Compute) => need[part] > Math.max(0, limit[part]);
  const fields = (["cpuMillis", "memoryBytes", "gpus"] as const).map((part) => ({ part, ...SETTINGS[part] }));
  const never = fields.filter(({ part }) => isOver(total, part));
  if (never.length > 0) {
    const lower = never.map(({ field }) => field).join(" and ");
    return `; it can never fit on this server: lower ${lower}, or start the server with a larger ${never.map(({ option }) => option).join(" and ")}`;
  }
  const missing = fields.filter(({ part }) => isOver(free, part) && part !== "gpus");
  if (missing.length === 0) return "";
  return `; it starts when enough is free: stop or scale down what reserves it, or start the server with a larger ${missing.map(({ option }) => option).join(" and ")}`;
}

const SETTINGS: Record<keyof Compute, { field: string; option: string }> = {
  cpuMillis: { field: "compute.cpu", option: "--cpus" },
  memoryBytes: { field: "compute.mem", option: "--memory" },
  gpus: { field: "compute.gpu", option: "--gpus" },
};

export function sumOf(reservations: readonly Reservation[]): Compute {
  const sum = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
  for (const { cpuMillis, memoryBytes, gpus } of reservations) {
    sum.cpuMillis += cpuMillis;
    sum.memoryBytes += memoryBytes;
    sum.gpus += gpus.length;
  }
  return sum;
}

function amountsOf({ cpuMillis, memoryBytes, gpus }: Compute, withGpus: boolean): string {
  return [
    `${Math.max(0, cpuMillis) / 1000} CPU`,
    ...(memoryBytes > 0 ? [mib(memoryBytes)] : []),
    ...(withGpus ? [`${gpus} GPU`] : []),
  ].join(" and ");
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / (1024 * 1024))} MiB`;
}
