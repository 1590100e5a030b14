/** The workers of one job: as many as are wanted, replaced when they die, all gone at the end. */
import type { WorkerCounts } from "../contracts/jobs.ts";
import type { RunningWorker } from "../engine/engine.ts";
import type { Init } from "../protocol/messages.ts";
import { BatchWorker, type BatchWorkerEvents } from "./batch-worker.ts";

export interface JobWorkersOptions {
  epoch: number;
  start: () => Promise<RunningWorker>;
  forget: (workerId: string) => Promise<void>;
  init: () => Init;
  events: BatchWorkerEvents;
  /** A worker process could not be started, or what it requires could not be installed. */
  onStartFailed: (error: Error) => void;
}

export class JobWorkers {
  private readonly options: JobWorkersOptions;
  private readonly workers = new Set<BatchWorker>();
  private starting = 0;
  private failed = 0;
  private isStopped = false;

  constructor(options: JobWorkersOptions) {
    this.options = options;
  }

  /** Starts what is missing to `count` workers. Returns at once. */
  startUpTo(count: number): void {
    const missing = count - this.workers.size - this.starting;
    for (let i = 0; i < missing && !this.isStopped; i++) void this.startOne();
  }

  ready(): BatchWorker[] {
    return [...this.workers].filter((worker) => worker.state === "ready");
  }

  /** The counts of the contract, where `wanted` workers should be there. */
  counts(wanted: number): WorkerCounts {
    const running = this.ready().length;
    const initializing = this.workers.size - running + this.starting;
    const pending = Math.max(0, wanted - initializing - running);
    return { pending, initializing, running, succeeded: 0, failed: this.failed, stalled: 0 };
  }

  /** SIGTERM to all, SIGKILL after `graceMs`; resolves when they are gone. */
  async stopAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    await Promise.all([...this.workers].map((worker) => worker.stop(graceMs)));
    await Promise.all([...this.workers].map((worker) => this.drop(worker)));
  }

  private async startOne(): Promise<void> {
    const { start, events, init, epoch, onStartFailed } = this.options;
    this.starting++;
    const running = await start()
      .catch((error: Error) => onStartFailed(error))
      .finally(() => this.starting--);
    if (running === undefined) return;
    const worker = new BatchWorker(running, {
      ...events,
      onSetUpFailed: (failed, fault) => {
        this.failed++;
        void this.drop(failed);
        events.onSetUpFailed(failed, fault);
      },
      onDeath: (dead, death) => {
        void this.drop(dead);
        events.onDeath(dead, death);
      },
    });
    this.workers.add(worker);
    // The job may have ended while the process was starting.
    if (!this.isStopped) return worker.setUp(init(), epoch);
    await worker.stop(0);
    await this.drop(worker);
  }

  private drop(worker: BatchWorker): Promise<void> {
    this.workers.delete(worker);
    return this.options.forget(worker.identity.worker_id);
  }
}
