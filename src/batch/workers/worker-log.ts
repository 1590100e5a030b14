/** Writes to a job's log what happens to its workers: how each died, and once what they wait for. */
import type { Log } from "../../base/log.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import type { WorkerDeath } from "./worker-death.ts";
import type { WorkerReservations } from "./worker-reservations.ts";

/** Workers that wait longer than this for compute are logged. */
const WAITING_LOGGED_MS = 2_000;

export interface WorkerLogOptions {
  jobId: string;
  log: Log;
  jobLog: (line: string) => void;
}

export class WorkerLog {
  private readonly options: WorkerLogOptions;
  private hasLoggedWaiting = false;

  constructor(options: WorkerLogOptions) {
    this.options = options;
  }

  died(worker_id: string, { exit, broken }: WorkerDeath): void {
    const { jobId: job_id, log, jobLog } = this.options;
    if (broken === undefined) return jobLog(`worker ${worker_id} ${describeExit(exit)}`);
    log.error(
      { event: "worker_broke_protocol", job_id, worker_id, broken },
      "a worker broke the protocol and was killed",
    );
    jobLog(`worker ${worker_id} broke the protocol and was killed: ${broken}`);
  }

  longStart(worker_id: string, seconds: number): void {
    this.options.jobLog(`worker ${worker_id} has been starting for ${seconds} s`);
  }

  notReused(worker_id: string, { type, message }: WorkerFault): void {
    this.options.jobLog(
      `worker ${worker_id}, which has worked for other jobs, could not be set up for this one (${type}: ${message}); a new one starts`,
    );
  }

  recycled(worker_id: string): void {
    this.options.jobLog(`worker ${worker_id} has reached max_requests or max_age, and is replaced`);
  }

  yields(worker_id: string): void {
    this.options.jobLog(`worker ${worker_id} ends between two batches, so that others get its compute`);
  }

  waiting(reservations: WorkerReservations, nowMs: number): void {
    if (this.hasLoggedWaiting) return;
    const waiting = reservations.waiting(nowMs - WAITING_LOGGED_MS);
    if (waiting === 0) return;
    this.hasLoggedWaiting = true;
    const { wanted } = reservations;
    // Submit keys read the log of a job, so it names no other API.
    this.options.jobLog(
      `${waiting} of ${wanted} workers wait for compute: ${reservations.describeCompute(false)}`,
    );
  }
}
