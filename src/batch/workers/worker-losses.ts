/**
 * Counts how a job's workers die, over all phases of its run, and decides when the job ends because they keep dying.
 * It knows neither batches nor processes.
 */
import type { JobReason } from "../../contracts/jobs.ts";
import { BROKEN_WORKERS_MAX, DEADLY_BATCHES_MAX, IDLE_DEATHS_MAX } from "../../contracts/limits/jobs.ts";
import type { WorkerExit } from "../../engine/engine.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import { evidenceOf } from "./death-faults.ts";

/** The cause of the job's end. */
export interface WorkersKeepDying {
  kind: "worker_error" | "worker_oom";
  reason: JobReason;
}

export class WorkerLosses {
  private idleDeaths = 0;
  private deadlyBatches = 0;
  private brokenWorkers = 0;

  /** A worker reported batches. A row of idle deaths ends with that; a row of deadly batches, if one succeeded. */
  settled(succeeded: number): void {
    this.idleDeaths = 0;
    if (succeeded > 0) this.deadlyBatches = 0;
  }

  /** A worker died with no batch in hand. The result is defined if the job must end. */
  diedIdle(exit: WorkerExit): WorkersKeepDying | undefined {
    if (++this.idleDeaths < IDLE_DEATHS_MAX) return undefined;
    return keepDying(exit, `${IDLE_DEATHS_MAX} workers in a row died while they had no batch`);
  }

  /** A batch has used up its attempts, the last one because its worker died. */
  failedBatch(exit: WorkerExit): WorkersKeepDying | undefined {
    if (++this.deadlyBatches < DEADLY_BATCHES_MAX) return undefined;
    return keepDying(exit, `${DEADLY_BATCHES_MAX} batches in a row failed because their worker died`);
  }

  /** Counted over the whole run: such a worker may do some batches well before it breaks again. */
  brokeProtocol(exit: WorkerExit, broken: string): WorkersKeepDying | undefined {
    if (++this.brokenWorkers < BROKEN_WORKERS_MAX) return undefined;
    return keepDying(exit, `${BROKEN_WORKERS_MAX} workers broke the protocol (the last one: ${broken})`);
  }
}

function keepDying(exit: WorkerExit, what: string): WorkersKeepDying {
  const reason: JobReason = {
    code: "workers_keep_dying",
    message: `${what}; the last one ${describeExit(exit)}`,
    hint: "`quern logs API JOB` has their last output; `quern job resume API JOB` continues the job once the cause is fixed",
    evidence: evidenceOf(exit),
  };
  return { kind: exit.outOfMemory === undefined ? "worker_error" : "worker_oom", reason };
}
