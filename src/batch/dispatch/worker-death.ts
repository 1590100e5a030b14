/** Describes a worker's death for failure records and for the reasons of jobs. */
import type { JobReason } from "../../contracts/jobs.ts";
import { IDLE_DEATHS_MAX } from "../../contracts/limits/jobs.ts";
import type { WorkerExit } from "../../engine/engine.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import type { DeathEvidence, WorkerFault } from "../../protocol/messages.ts";

/** The failure of the batch that was in hand. */
export function deathFault(exit: WorkerExit): WorkerFault {
  const { lastLines = [] } = exit;
  const said = lastLines.length === 0 ? "" : `the worker's last lines:\n${lastLines.join("\n")}\n`;
  return {
    stage: "predict",
    type: exit.outOfMemory === undefined ? "WorkerDied" : "OutOfMemory",
    message: `the worker ${describeExit(exit)} while predict() had this batch`,
    traceback: said,
    evidence: evidenceOf(exit),
  };
}

export const IDLE_DEATHS = `${IDLE_DEATHS_MAX} workers in a row died with no batch in hand`;

/** The reason of a job that ends because its workers keep dying. */
export function keepDying(exit: WorkerExit, what: string): JobReason {
  return {
    code: "workers_keep_dying",
    message: `${what}; the last one ${describeExit(exit)}`,
    hint: "`quern logs API JOB` has what they said last; `quern job resume API JOB` goes on when the cause is mended",
    evidence: evidenceOf(exit),
  };
}

/** `broken`: how it broke the protocol, if it was killed for that. */
export function diedInSetUp(exit: WorkerExit, broken: string | undefined): WorkerFault {
  const because = broken === undefined ? "" : ` and broke the protocol (${broken})`;
  return {
    stage: "init",
    type: exit.outOfMemory === undefined ? "WorkerDied" : "OutOfMemory",
    message: `the worker process ${describeExit(exit)} before its predictor was ready${because}`,
    traceback: "",
    evidence: evidenceOf(exit),
  };
}

export function evidenceOf(exit: WorkerExit): DeathEvidence {
  return {
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
    ...(exit.code === undefined ? {} : { exit_code: exit.code }),
    ...(exit.outOfMemory === undefined ? {} : { out_of_memory: exit.outOfMemory }),
    ...(exit.peakMemoryBytes === undefined ? {} : { peak_memory_bytes: exit.peakMemoryBytes }),
    ...(exit.memoryLimitBytes === undefined ? {} : { memory_limit_bytes: exit.memoryLimitBytes }),
    ...(exit.lastLines === undefined || exit.lastLines.length === 0 ? {} : { last_lines: exit.lastLines }),
  };
}
