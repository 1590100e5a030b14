/** Builds the `reason` of a job that ended early: what was wrong, and what to do. */
import { ServiceError } from "../../contracts/errors.ts";
import type { JobReason } from "../../contracts/jobs.ts";
import { EnvironmentError } from "../../engine/environments/environment-error.ts";
import { ObjectChanged } from "../../object-store/object-store.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";
import { EnqueueError } from "./enqueue-error.ts";

export function startFailed(error: Error): JobReason {
  const code = error instanceof EnvironmentError ? "requirements_failed" : "worker_start_failed";
  return {
    code,
    message: error.message,
    hint: "correct it and deploy again; `quern logs API JOB` has the whole output",
  };
}

export function setUpFailed(fault: WorkerFault): JobReason {
  return {
    code: "set_up_failed",
    message: `a worker could not be set up: ${describeFault(fault)}`,
    hint:
      fault.evidence?.out_of_memory === undefined
        ? "`quern logs API JOB` has the traceback; correct the predictor and deploy again"
        : "give the API a larger compute.mem, or the machine more memory",
    ...(fault.evidence === undefined ? {} : { evidence: fault.evidence }),
  };
}

export function completionFailed(fault: WorkerFault): JobReason {
  return {
    code: "on_job_complete_failed",
    message: `on_job_complete raised ${describeFault(fault)}`,
    hint: "`quern logs API JOB` has the traceback",
  };
}

export function enqueueFailed(error: Error): JobReason {
  if (error instanceof EnqueueError) return { code: error.code, message: error.message, hint: error.hint };
  return inputLost(error);
}

/** The input has changed, or cannot be read. */
export function inputLost(error: Error): JobReason {
  const changed = error instanceof ObjectChanged ? error : error.cause;
  if (changed instanceof ObjectChanged)
    return {
      code: "input_changed",
      message: changed.message,
      hint: "submit the job again, and do not change its input until it has ended",
    };
  return {
    code: error instanceof ServiceError ? error.code : "input_unreadable",
    message: `the input could not be read: ${error.message}`,
    hint: "check that the files exist, are readable and do not change, then submit again",
  };
}

/** The output could not be written. What was computed is kept: `resume` continues with it. */
export function outputFailed(error: Error): JobReason {
  return {
    code: error instanceof ServiceError ? error.code : "output_failed",
    message: `the output could not be written: ${error.message}`,
    hint: "correct what it says, then continue with `quern job resume API JOB`; no prediction is lost",
  };
}

export function unexpected(error: Error): JobReason {
  // The operating system has refused a call: a file of another owner, or one that is too large.
  const isOfSystem = typeof (error as NodeJS.ErrnoException).syscall === "string";
  return {
    code: "unexpected_error",
    message: error.message,
    hint: isOfSystem
      ? "correct what it says on the server, then continue with `quern job resume API JOB`"
      : "this is a bug in Quern; please report it with the server's log",
  };
}
