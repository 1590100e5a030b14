/** Where the processes of a job's workers come from: a former job of the version left one, or a new one is started. */
import { whenDiskWorks } from "../../base/disk-full.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import type { Reservation } from "../../engine/reservations.ts";
import { startFailed } from "../records/job-reasons.ts";
import type { WarmWorker } from "../warm/warm-workers.ts";
import type { FormerLife } from "./batch-worker-events.ts";
import type { JobWorkersOptions } from "./job-workers-options.ts";

const NO_GRACE_MS = 0;

export interface Begun {
  process: RunningWorker;
  /** Of a process that has worked for other jobs. */
  former?: FormerLife;
  /** The file that it writes its output to, if that has changed. */
  log_file?: string;
}

export class WorkerProcesses {
  private readonly options: JobWorkersOptions;

  constructor(options: JobWorkersOptions) {
    this.options = options;
  }

  /**
   * Undefined if none can be started: the job ends. A warm one is taken in this turn. Later it would end, because its
   * compute is reserved now.
   */
  begin(reservation: Reservation): Promise<Begun | undefined> {
    const warm = this.options.warm?.take();
    return warm === undefined ? this.start(reservation) : this.takeOver(warm);
  }

  private async start(reservation: Reservation): Promise<Begun | undefined> {
    const { start, diskWait, end } = this.options;
    try {
      return { process: await whenDiskWorks(() => start(reservation), diskWait) };
    } catch (error) {
      end({ kind: "worker_error", reason: startFailed(error as Error) });
      return undefined;
    }
  }

  private async takeOver({ process, ...former }: WarmWorker): Promise<Begun> {
    const { takeOver, diskWait, forget } = this.options;
    try {
      return { process, former, log_file: await whenDiskWorks(() => takeOver(process), diskWait) };
    } catch (error) {
      await process.stop(NO_GRACE_MS);
      await forget(process.identity.worker_id);
      throw error;
    }
  }
}
