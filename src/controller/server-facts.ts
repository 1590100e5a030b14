/** What the control plane tells about this server: compute and the database. */
import { stat } from "node:fs/promises";
import { databaseFile } from "../contracts/data-layout.ts";
import type { ComputeShown } from "../contracts/http/answers.ts";
import type { WorkerInMemory } from "../control/worker-metrics.ts";
import type { Database } from "../database/database.ts";
import { apisOfWorkers } from "../database/worker-rows.ts";
import type { ComputeAccount } from "../engine/compute-account.ts";
import type { Engine } from "../engine/engine.ts";
import { type Compute, combine, NO_COMPUTE } from "../engine/scheduler/compute.ts";
import type { ComputeFacts } from "../explain/facts.ts";
import type { Amount } from "../explain/words.ts";

export function shownCompute(
  { total, available }: ComputeAccount,
  machine: Omit<Compute, "gpus">,
): ComputeShown {
  const part = (name: keyof Compute, unit: number) => ({
    total: total[name] / unit,
    free: Math.max(0, available[name]) / unit,
  });
  return {
    cpus: { ...part("cpuMillis", 1000), machine: machine.cpuMillis / 1000 },
    memory_bytes: { ...part("memoryBytes", 1), machine: machine.memoryBytes },
    gpus: part("gpus", 1),
  };
}

/** The account as explanations need it: what is free, and who holds how much, the largest holders first. */
export function accountFacts({ total, available, holdings }: ComputeAccount): ComputeFacts {
  const sums = new Map<string, Compute>();
  for (const { by, compute } of holdings) {
    const sum = sums.get(by.holder) ?? NO_COMPUTE;
    sums.set(
      by.holder,
      combine(sum, compute, (a, b) => a + b),
    );
  }
  const most = [...sums].sort(([, a], [, b]) => b.gpus - a.gpus || b.cpuMillis - a.cpuMillis);
  const holders = most.map(([holder, sum]) => ({ holder, amount: amountOf(sum) }));
  return { total: amountOf(total), free: amountOf(available), holders };
}

function amountOf({ cpuMillis, memoryBytes, gpus }: Compute): Amount {
  return {
    cpus: Math.max(0, cpuMillis) / 1000,
    memoryBytes: Math.max(0, memoryBytes),
    gpus: Math.max(0, gpus),
  };
}

/** How many replicas and workers wait for compute, and for how long the first of them. */
export function waitingFor(account: ComputeAccount): { count: number; longestSeconds: number } {
  const { waitingCount: count, waitingSinceMs: since } = account;
  return { count, longestSeconds: since === undefined ? 0 : (performance.now() - since) / 1000 };
}

/** The memory of the running workers of APIs. Stages of applications have no row, and are missing. */
export async function workersInMemory(db: Database, engine: Engine): Promise<WorkerInMemory[]> {
  const used = engine.memoryInUse();
  if (used.size === 0) return [];
  const rows = await apisOfWorkers(db);
  return rows.flatMap(({ worker_id, api }) => {
    const memory = used.get(worker_id);
    return memory === undefined ? [] : [{ api, ...memory }];
  });
}

/** Of SQLite's file with its log, or of a PostgreSQL database. */
export async function databaseBytes(dataDir: string, postgres: Database | undefined): Promise<number> {
  if (postgres !== undefined) {
    const [size] = await postgres.all<{ bytes: number }>(
      "SELECT pg_database_size(current_database()) AS bytes",
    );
    return Number(size!.bytes);
  }
  const sizes = await Promise.all(
    ["", "-wal"].map((end) =>
      stat(databaseFile(dataDir) + end).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
