/** Why replicas or workers have no CPUs, memory or GPUs yet, and who holds them. Pure. */
import type { ComputeFacts } from "./facts.ts";
import { type Finding, found } from "./finding.ts";
import { type Amount, amount, count } from "./words.ts";

const HOLDERS_SHOWN = 5;

export interface ComputeWait {
  /** How many of them have none. */
  missing: number;
  what: "replica" | "worker";
  /** The compute of one of them. */
  need: Amount;
  /** Others of it work meanwhile. */
  isServing: boolean;
  /** Who comes first, and other details, in words. */
  order?: string | undefined;
}

const PARTS = {
  cpus: { field: "compute.cpu", option: "--cpus", name: "CPUs" },
  memoryBytes: { field: "compute.mem", option: "--memory", name: "memory" },
  gpus: { field: "compute.gpu", option: "--gpus", name: "GPUs" },
} as const;
type Part = keyof typeof PARTS;
const NAMES = Object.keys(PARTS) as Part[];

export function computeFinding(wait: ComputeWait, compute: ComputeFacts): Finding {
  if (compute.isOfCluster === true) return podFinding(wait);
  const { total, free, holders } = compute;
  const { missing, what, need, isServing } = wait;
  const never = NAMES.filter((part) => need[part] > total[part]);
  const lacking = NAMES.filter((part) => need[part] > Math.max(0, free[part]));
  const who = `${count(missing, what)} ${missing === 1 ? "waits" : "wait"}`;
  const needs = `each ${what} needs ${amount(need)}`;
  if (never.length > 0)
    return found("compute_too_large", "error", `${who} for more ${words(never)} than the server has`, {
      evidence: [needs, `the server may give out ${amount(total)} in all`],
      cure: `lower ${fields(never)}, or start the server with a larger ${options(never)}; waiting does not help`,
      command: "quern doctor",
    });
  const held = holdersOf(lacking[0] ?? "cpus", holders ?? []).slice(0, HOLDERS_SHOWN);
  const first = held[0]?.holder;
  const by = first === undefined ? "" : ` that ${first}${held.length > 1 ? " and others hold" : " holds"}`;
  return found("compute_held", isServing ? "warning" : "error", `${who} for ${words(lacking)}${by}`, {
    evidence: [
      needs,
      `free: ${amount(free)} of ${amount(total)}`,
      ...held.map(({ holder, amount: theirs }) => `${holder} holds ${amount(theirs)}`),
      wait.order,
    ],
    cure: `it starts when enough is free: stop or scale down what holds it, lower ${fields(lacking)}, or start the server with a larger ${options(lacking)}`,
    command: "quern get --all",
  });
}

/** The cluster says what its pods wait for. */
function podFinding({ missing, what, need, isServing, order }: ComputeWait): Finding {
  const who = `${count(missing, what)} ${missing === 1 ? "waits for a pod" : "wait for pods"} of the cluster`;
  return found("compute_held", isServing ? "warning" : "error", who, {
    evidence: [`each ${what} needs ${amount(need)}`, order],
    cure: "correct what the cluster says, or wait until it has a place",
    command: "quern get --all",
  });
}

/** Those that hold something of this part, the largest first. */
function holdersOf(part: Part, holders: NonNullable<ComputeFacts["holders"]>) {
  const having = holders.filter(({ amount: theirs }) => theirs[part] > 0);
  return having.sort((a, b) => b.amount[part] - a.amount[part]);
}

/** All parts, if none is known to lack: others come first. */
function words(parts: readonly Part[]): string {
  return parts.length === 0 ? "compute" : parts.map((part) => PARTS[part].name).join(" and ");
}

function fields(parts: readonly Part[]): string {
  return (parts.length === 0 ? NAMES.slice(0, 1) : parts).map((part) => PARTS[part].field).join(" and ");
}

function options(parts: readonly Part[]): string {
  return (parts.length === 0 ? NAMES.slice(0, 1) : parts).map((part) => PARTS[part].option).join(" and ");
}
