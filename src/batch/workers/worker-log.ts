/** Writes down what happens to the workers of a job: in its log how each died, and in its spans when each worked. */
import type { Log } from "../../base/log.ts";
import type { WorkerExit } from "../../engine/engine.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";
import type { WorkerSpans } from "../spans/worker-spans.ts";
import type { BatchWorker } from "./batch-worker.ts";
import type { WorkerDeath } from "./worker-death.ts";
import type { WorkerReservations } from "./worker-reservations.ts";

/** Workers that wait longer than this for compute are logged. */
const WAITING_LOGGED_MS = 2_000;

export interface WorkerLogOptions {
  jobId: string;
  log: Log;
  jobLog: (line: string) => void;
  spans: Pick<WorkerSpans, "started" | "ready" | "because" | "ended">;
}

export class WorkerLog {
  private readonly options: WorkerLogOptions;
  private hasLoggedWaiting = false;
  private hasLoggedStalled = false;
  /** A worker was ready. */
  hadWorker = false;
  /** Workers that could not be set up, so that the job ended. */
  failed = 0;

  constructor(options: WorkerLogOptions) {
    this.options = options;
  }

  started({ identity }: BatchWorker): void {
    this.options.spans.started(identity.worker_id);
  }

  ready({ identity }: BatchWorker): void {
    this.hadWorker = true;
    this.options.spans.ready(identity.worker_id);
  }

  ended({ identity, deliveries }: BatchWorker): void {
    this.options.spans.ended(identity.worker_id, deliveries.leased);
  }

  notSetUp(worker_id: string, fault: WorkerFault): void {
    this.failed++;
    this.options.spans.because(worker_id, "failed", describeFault(fault));
  }

  died(worker_id: string, { exit, broken, inHand }: WorkerDeath): void {
    const { jobId: job_id, log, jobLog, spans } = this.options;
    const batch = inHand === undefined ? "" : ` with batch ${inHand} in hand`;
    spans.because(worker_id, "died", `${describeExit(exit)}${batch}`);
    if (broken === undefined) return jobLog(`worker ${worker_id} ${describeExit(exit)}`);
    log.error(
      { event: "worker_broke_protocol", job_id, worker_id, broken },
      "a worker broke the protocol and was killed",
    );
    jobLog(`worker ${worker_id} broke the protocol and was killed: ${broken}`);
  }

  interrupted({ identity: { worker_id } }: BatchWorker, exit: WorkerExit): void {
    this.options.spans.because(worker_id, "died", describeExit(exit));
    this.options.jobLog(`worker ${worker_id} ${describeExit(exit)}`);
  }

  longStart(worker_id: string, seconds: number): void {
    this.options.jobLog(`worker ${worker_id} has been starting for ${seconds} s`);
  }

  notReused(worker_id: string, fault: WorkerFault): void {
    const { type, message } = fault;
    this.options.spans.because(worker_id, "failed", describeFault(fault));
    this.options.jobLog(
      `worker ${worker_id}, which has worked for other jobs, could not be set up for this one (${type}: ${message}); a new one starts`,
    );
  }

  recycled(worker_id: string): void {
    this.options.spans.because(worker_id, "recycled");
    this.options.jobLog(`worker ${worker_id} has reached max_requests or max_age, and is replaced`);
  }

  yields(worker_id: string): void {
    this.options.spans.because(worker_id, "yielded");
    this.options.jobLog(`worker ${worker_id} ends between two batches, so that others get its compute`);
  }

  /** Once when workers wait, and once more when some are stalled: then the reason may be another one. */
  waiting(reservations: WorkerReservations, nowMs: number): void {
    if (this.hasLoggedStalled) return;
    const { stalled } = reservations.counts(0, nowMs);
    if (stalled === 0) return this.logWaiting(reservations, nowMs);
    this.hasLoggedStalled = true;
    this.tellNeed(reservations, `${stalled} of ${reservations.wanted} workers are stalled: they wait`);
  }

  private logWaiting(reservations: WorkerReservations, nowMs: number): void {
    if (this.hasLoggedWaiting) return;
    const waiting = reservations.waiting(nowMs - WAITING_LOGGED_MS);
    if (waiting === 0) return;
    this.hasLoggedWaiting = true;
    this.tellNeed(reservations, `${waiting} of ${reservations.wanted} workers wait`);
  }

  /** Submit keys read the log of a job, so it names no other API. */
  private tellNeed(reservations: WorkerReservations, what: string): void {
    this.options.jobLog(`${what} ${reservations.describeNeed(false)}`);
  }
}
