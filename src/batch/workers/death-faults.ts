/** Describes a worker's death for users: as the failure of the batch that was in hand, or of the set-up. */
import { WARM_REPLY_MS } from "../../contracts/limits/jobs.ts";
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

/** The failure of a batch for which its worker was killed. */
export function timeoutFault(timeoutMs: number): WorkerFault {
  return {
    stage: "predict",
    type: "PredictionTimeout",
    message: `predict() took longer than predictor.timeout (${timeoutMs} ms) and was killed`,
    traceback: "",
  };
}

/** The process of a former job cannot be connected to. */
export const NO_REPLY: WorkerFault = {
  stage: "init",
  type: "NoReply",
  message: `the process did not reply within ${WARM_REPLY_MS / 1_000} s`,
  traceback: "",
};

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
