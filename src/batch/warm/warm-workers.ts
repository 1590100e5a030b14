/**
 * Worker processes that have done a job and wait for the next one of their version (`predictor.reuse_worker`). They
 * reserve no compute: one ends as soon as somebody else reserves what it needs, or after WARM_WORKER_MS.
 */
import { contain } from "../../base/boundary.ts";
import { WARM_STOP_GRACE_MS, WARM_WORKER_MS } from "../../contracts/limits/jobs.ts";
import type { ComputeAccount } from "../../engine/compute-account.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import type { ExitWatch } from "../../engine/exit-watch.ts";
import type { Wear } from "../../engine/lifetime.ts";
import { type Compute, fits, minus, NO_COMPUTE, plus } from "../../engine/scheduler/compute.ts";
import type { WorkerConnection } from "../../protocol/worker-connection.ts";

export interface WarmWorker {
  process: RunningWorker;
  exit: ExitWatch;
  wear: Wear;
  /** Of its former job. A worker of a job ends when it has no connection. */
  connection: WorkerConnection;
}

/** The version of an API, whose jobs share workers. */
export interface WarmVersion {
  api_name: string;
  api_id: string;
  /** What one worker needs. */
  compute: Compute;
}

/** The warm workers of one version, as its jobs see them. */
export interface WarmPlace {
  /** Takes the one that was kept last; undefined if there is none. */
  take(): WarmWorker | undefined;
  /** False if it cannot be kept. Then the caller ends it. */
  keep(worker: WarmWorker): boolean;
}

export interface WarmWorkersDeps {
  account: Pick<ComputeAccount, "available" | "onTaken">;
  /** Deletes the record of a worker that is gone. */
  forgetWorker: (workerId: string) => Promise<void>;
}

interface Kept extends WarmWorker {
  version: WarmVersion;
  timer: NodeJS.Timeout;
}

export class WarmWorkers {
  private readonly deps: WarmWorkersDeps;
  /** By the id of the worker, the one that was kept first at the front. */
  private readonly kept = new Map<string, Kept>();
  private readonly leaving = new Set<Promise<void>>();
  private isChecking = false;
  private isStopped = false;

  constructor(deps: WarmWorkersDeps) {
    this.deps = deps;
    deps.account.onTaken(() => this.checkSoon());
  }

  get count(): number {
    return this.kept.size;
  }

  of(version: WarmVersion): WarmPlace {
    return { take: () => this.take(version), keep: (worker) => this.keep(version, worker) };
  }

  /** Ends those of an API, which is deleted. Resolves when they are gone. */
  async endOf(apiName: string): Promise<void> {
    const theirs = [...this.kept.values()].filter(({ version }) => version.api_name === apiName);
    await Promise.all(theirs.map((worker) => this.end(worker)));
  }

  /** Keeps none any more. Resolves when all are gone. */
  async stop(): Promise<void> {
    this.isStopped = true;
    for (const worker of [...this.kept.values()]) contain("a warm worker", () => this.end(worker));
    await Promise.all(this.leaving);
  }

  private take({ api_id }: WarmVersion): WarmWorker | undefined {
    const worker = [...this.kept.values()].findLast(({ version }) => version.api_id === api_id);
    if (worker !== undefined) this.remove(worker);
    return worker;
  }

  /** One with GPUs is not kept: others would get them while its memory on them is still in use. */
  private keep(version: WarmVersion, worker: WarmWorker): boolean {
    if (this.isStopped || version.compute.gpus > 0) return false;
    const timer = setTimeout(() => contain("a warm worker", () => this.end(kept)), WARM_WORKER_MS).unref();
    const kept: Kept = { ...worker, version, timer };
    this.kept.set(worker.process.identity.worker_id, kept);
    worker.exit.follow(() => contain("a warm worker", () => this.hasDied(kept)));
    this.checkSoon();
    return true;
  }

  /** One that dies while it is kept is only forgotten. */
  private async hasDied(worker: Kept): Promise<void> {
    if (this.remove(worker)) await this.deps.forgetWorker(worker.process.identity.worker_id);
  }

  private remove(worker: Kept): boolean {
    clearTimeout(worker.timer);
    const { worker_id } = worker.process.identity;
    return this.kept.get(worker_id) === worker && this.kept.delete(worker_id);
  }

  private async end(worker: Kept): Promise<void> {
    if (!this.remove(worker)) return;
    const gone = this.stopProcess(worker);
    this.leaving.add(gone);
    await gone.finally(() => this.leaving.delete(gone));
  }

  private async stopProcess({ process }: Kept): Promise<void> {
    await process.stop(WARM_STOP_GRACE_MS);
    await this.deps.forgetWorker(process.identity.worker_id);
  }

  /** After this turn: whoever has just got compute may take a warm worker for it first. */
  private checkSoon(): void {
    if (this.isChecking || this.kept.size === 0) return;
    this.isChecking = true;
    setImmediate(() => {
      this.isChecking = false;
      contain("warm workers", () => this.endSurplus());
    });
  }

  /** Ends the oldest until the others need no more than what is free. */
  private endSurplus(): void {
    const { available } = this.deps.account;
    const all = [...this.kept.values()];
    let needed = all.reduce((sum, { version }) => plus(sum, version.compute), NO_COMPUTE);
    for (const worker of all) {
      if (fits(needed, available)) return;
      needed = minus(needed, worker.version.compute);
      contain("a warm worker", () => this.end(worker));
    }
  }
}
