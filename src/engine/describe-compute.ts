/** Compute in words: what is needed, how much there is, who has it, and what to do about it. */
import type { Compute, Grant } from "./compute-account.ts";

/** A sentence, no list: who has most is whom to look at. */
const HOLDERS_SHOWN = 5;

/** `free` may be below nothing. */
export function describeCompute(
  need: Compute,
  { total, free, held }: { total: Compute; free: Compute; held: ReadonlyMap<Grant, string> },
): string {
  const amounts = (compute: Compute) => amountsOf(compute, need.gpus > 0);
  const shown = amounts({ ...free, memoryBytes: Math.max(1, free.memoryBytes) });
  return `each takes ${amounts(need)}; of ${amounts(total)}, ${shown} are free${holders(held)}${cure(need, total, free)}`;
}

/** Those that have most, with what they have together. */
function holders(held: ReadonlyMap<Grant, string>): string {
  const grants = new Map<string, Grant[]>();
  for (const [grant, holder] of held) grants.set(holder, [...(grants.get(holder) ?? []), grant]);
  const sums = [...grants].map(([holder, theirs]) => [holder, sumOf(theirs)] as const);
  const most = sums.sort(([, a], [, b]) => b.gpus - a.gpus || b.cpuMillis - a.cpuMillis);
  const inWords = (holder: string, sum: Compute) => `${holder} (${amountsOf(sum, sum.gpus > 0)})`;
  const shown = most.slice(0, HOLDERS_SHOWN).map(([holder, sum]) => inWords(holder, sum));
  const others = most.slice(HOLDERS_SHOWN);
  const rest = sumOf(others.flatMap(([holder]) => grants.get(holder)!));
  const more = others.length > 0 ? [inWords(`${others.length} more`, rest)] : [];
  return shown.length === 0 ? "" : `; held by ${[...shown, ...more].join(", ")}`;
}

/** Nothing if it fits. GPUs cannot be more than there are. */
function cure(need: Compute, total: Compute, free: Compute): string {
  const isOver = (limit: Compute, part: keyof Compute) => need[part] > Math.max(0, limit[part]);
  const fields = (["cpuMillis", "memoryBytes", "gpus"] as const).map((part) => ({ part, ...SETTINGS[part] }));
  const never = fields.filter(({ part }) => isOver(total, part));
  if (never.length > 0) {
    const lower = never.map(({ field }) => field).join(" and ");
    return `; it never fits here: lower ${lower}, or start the server with a larger ${never.map(({ option }) => option).join(" and ")}`;
  }
  const missing = fields.filter(({ part }) => isOver(free, part) && part !== "gpus");
  if (missing.length === 0) return "";
  return `; it starts when enough is free: stop or scale down what holds it, or start the server with a larger ${missing.map(({ option }) => option).join(" and ")}`;
}

const SETTINGS: Record<keyof Compute, { field: string; option: string }> = {
  cpuMillis: { field: "compute.cpu", option: "--cpus" },
  memoryBytes: { field: "compute.mem", option: "--memory" },
  gpus: { field: "compute.gpu", option: "--gpus" },
};

export function sumOf(grants: readonly Grant[]): Compute {
  const sum = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
  for (const { cpuMillis, memoryBytes, gpus } of grants) {
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
