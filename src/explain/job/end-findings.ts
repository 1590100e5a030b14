/** Why a job ended as it did, and whether a redrive or resume repairs it. Pure. */
import type { JobReason } from "../../contracts/jobs.ts";
import { type Cause, type Finding, found } from "../finding.ts";
import { count, duration, short, size } from "../words.ts";
import type { JobFacts } from "./job-facts.ts";
import { leftOf } from "./progress-findings.ts";

interface End {
  cause: Cause;
  title: string;
  cure: string;
  /** `resume`: it continues with the batches that were never settled. */
  command: "resume" | "logs" | "failures";
}

const RESUME =
  "once that is corrected, resume the job: it continues with the batches that were never settled";
const KEEPS =
  "the job keeps the version that it was submitted to, so deploy the corrected project and submit again";

/** By the code of the reason. */
const ENDS: Record<string, End> = {
  stopped: {
    cause: "job_stopped",
    title: "The job was stopped on request",
    cure: "resume continues with the batches that were never settled",
    command: "resume",
  },
  timed_out: {
    cause: "job_timed_out",
    title: "The job did not end within its timeout",
    cure: "resume gives it the same timeout once more, and settled batches do not run again",
    command: "resume",
  },
  requirements_failed: {
    cause: "requirements_failed",
    title: "The requirements of the project could not be installed",
    cure: `correct requirements.txt: ${KEEPS}; if only the package index was away, resume`,
    command: "logs",
  },
  set_up_failed: {
    cause: "init_failed",
    title: "A worker could not be set up: __init__ failed",
    cure: `${KEEPS}; if the cause was outside the project, resume`,
    command: "logs",
  },
  workers_keep_dying: {
    cause: "workers_die",
    title: "Workers kept dying",
    cure: `the log has their last output; ${KEEPS}; if the cause was outside the project, resume`,
    command: "logs",
  },
  bucket_not_found: {
    cause: "bucket_missing",
    title: "A bucket does not exist",
    cure: RESUME,
    command: "resume",
  },
  store_forbidden: {
    cause: "store_forbidden",
    title: "The store denied access",
    cure: RESUME,
    command: "resume",
  },
  store_unreachable: {
    cause: "store_unreachable",
    title: "The store did not respond for too long",
    cure: RESUME,
    command: "resume",
  },
  input_changed: {
    cause: "input_failed",
    title: "The input changed while the job ran",
    cure: "submit the job again, and do not change its input until it has ended",
    command: "logs",
  },
  output_failed: {
    cause: "output_failed",
    title: "The output could not be written",
    cure: RESUME,
    command: "resume",
  },
  output_conflict: {
    cause: "output_failed",
    title: "Something else has written to the output",
    cure: RESUME,
    command: "resume",
  },
};

const BY_STATUS: Partial<Record<JobFacts["status"], Omit<End, "title">>> = {
  status_enqueue_failed: {
    cause: "input_failed",
    cure: "correct the input and submit again; resume helps if the input itself is right",
    command: "logs",
  },
  status_unexpected_error: {
    cause: "internal_error",
    cure: "correct what the message says and resume; if it says nothing that you can correct, report a bug",
    command: "resume",
  },
};

/** Undefined if failed batches alone explain it: the findings about failures say more. */
export function endFinding(facts: JobFacts): Finding | undefined {
  const { reason, status, succeeded, failedBatches, total, ended } = facts;
  if (ended === undefined || reason === undefined || status === "status_completed_with_failures")
    return undefined;
  if (facts.failures.length > 0 && ["out_of_memory", "worker_died"].includes(reason.code)) return undefined;
  const end = endOf(facts, reason);
  const names = `${facts.apiName} ${facts.jobId}`;
  const { command } = end;
  return found(end.cause, status === "status_stopped" ? "info" : "error", end.title, {
    evidence: [
      short(reason.message, 400),
      ...evidenceOf(reason),
      `${succeeded} of ${total ?? facts.enqueuedBatches} batches succeeded, ${failedBatches} failed, ${leftOf(facts)} were never settled`,
      `it took ${duration(ended.tookS)}`,
    ],
    cure: end.cure,
    command: `quern job ${command} ${names}`,
  });
}

function endOf({ status }: JobFacts, reason: JobReason): End {
  if (/version .* is gone/.test(reason.message))
    return {
      cause: "version_gone",
      title: "The version that the job was submitted to is gone",
      cure: "submit the job again: it gets the version that is deployed now",
      command: "logs",
    };
  if (reason.evidence?.out_of_memory !== undefined)
    return {
      cause: "out_of_memory",
      title: "A worker ran out of memory",
      cure: `raise compute.mem: ${KEEPS}; a smaller batch_size helps too`,
      command: "logs",
    };
  const known = ENDS[reason.code];
  if (known !== undefined) return known;
  const rest = BY_STATUS[status] ?? { cause: "job_failed", cure: reason.hint ?? "", command: "logs" };
  return { ...rest, title: `The job failed: ${short(reason.message, 120)}` } as End;
}

function evidenceOf({ evidence }: JobReason): string[] {
  if (evidence === undefined) return [];
  const {
    batch_index,
    exit_code,
    signal,
    peak_memory_bytes: peak,
    memory_limit_bytes: limit,
    last_lines,
  } = evidence;
  return [
    ...(batch_index === undefined ? [] : [`it had batch ${batch_index} in hand`]),
    ...(exit_code === undefined ? [] : [`exit code ${exit_code}`]),
    ...(signal === undefined ? [] : [`signal ${signal}`]),
    ...(peak === undefined
      ? []
      : [`peak memory ${size(peak)}${limit === undefined ? "" : `, limit ${size(limit)}`}`]),
    ...(last_lines === undefined ? [] : last_lines.slice(-2).map((line) => `last output: ${short(line)}`)),
  ];
}

export function succeeded({ succeeded: batches, averageS, ended }: JobFacts): Finding {
  return found("job_succeeded", "info", `The job succeeded: all ${count(batches, "batch")}`, {
    evidence: [
      ended === undefined ? undefined : `it took ${duration(ended.tookS)}`,
      averageS === undefined ? undefined : `a batch took ${duration(averageS)} on average`,
    ],
  });
}
