/** Which errors the batches of a job fail with, and which of them dominates. Pure. */
import { type Cause, type Finding, found } from "../finding.ts";
import { count, percent, short } from "../words.ts";
import type { FailureFacts, JobFacts } from "./job-facts.ts";

/** Errors that Quern itself makes, by their type. */
const OWN: Record<string, { cause: Cause; what: string; cure: string }> = {
  OutOfMemory: {
    cause: "out_of_memory",
    what: "because their worker ran out of memory",
    cure: "use a smaller batch_size, or a larger compute.mem",
  },
  WorkerDied: {
    cause: "workers_die",
    what: "because their worker died",
    cure: "the failure has the worker's last output: look for os._exit or a crash in native code",
  },
  PredictionTimeout: {
    cause: "batches_time_out",
    what: "because predict() took longer than predictor.timeout",
    cure: "use a smaller batch_size, make predict() faster, or raise predictor.timeout",
  },
};
const GROUPS_SHOWN = 3;

export function failureFindings(facts: JobFacts): Finding[] {
  const { failures, failedAttempts, failedBatches } = facts;
  const [first] = failures;
  if (first !== undefined) return [dominating(facts, first)];
  if (failedBatches > 0) return [uncounted(facts)];
  if (failedAttempts === 0 || facts.ended !== undefined) return [];
  return [attemptsFail(facts)];
}

/** Nobody has counted their errors. */
function uncounted({ apiName, jobId, failedBatches: failed, succeeded }: JobFacts): Finding {
  const title = `${failed} of ${failed + succeeded} batches failed`;
  return found("batches_fail", failed >= succeeded ? "error" : "warning", title, {
    cure: "its own explanation says with which errors",
    command: `quern explain ${apiName} ${jobId}`,
  });
}

function dominating(facts: JobFacts, first: FailureFacts): Finding {
  const { apiName, jobId, failures, failedBatches, succeeded, ended } = facts;
  const { type } = first;
  const all = Math.max(failedBatches, first.batches);
  const own = OWN[type];
  const text = short(commonOf(first), 160);
  const title = `${all} of ${all + succeeded} batches failed, ${percent(first.batches, all)} of them ${own === undefined ? `with ${text}` : own.what}`;
  const names = `${apiName} ${jobId}`;
  const place = placeOf(first.traceback);
  return found(own?.cause ?? "batches_fail", all >= succeeded ? "error" : "warning", title, {
    evidence: [
      redriven(facts, first),
      ...failures
        .slice(0, GROUPS_SHOWN)
        .map((group) => `${count(group.batches, "batch")} with ${short(commonOf(group))}${exampleOf(group)}`),
      failures.length > GROUPS_SHOWN ? `${failures.length - GROUPS_SHOWN} other errors` : undefined,
      place,
    ],
    cure: `${own?.cure ?? "correct what the traceback shows"}; ${repair(facts)}`,
    command:
      ended === undefined || own !== undefined || allFailedAgain(facts)
        ? `quern job failures ${names} --by-error`
        : `quern job redrive ${names} --like ${first.firstBatch}`,
  });
}

/** What somebody has tried already. */
function redriven({ redriven: last }: JobFacts, { batches: dominating }: FailureFacts): string | undefined {
  if (last === undefined) return undefined;
  const { round, batches, succeeded, failed } = last;
  const which =
    batches === dominating ? `these ${count(batches, "batch")}` : `${count(batches, "failed batch")}`;
  const left = batches - succeeded - failed;
  const outcome = failed === batches ? "all failed again" : `${succeeded} succeeded, ${failed} failed again`;
  return `round ${round} ran ${which} again; ${outcome}${left > 0 ? `, ${left} did not end` : ""}`;
}

function allFailedAgain({ redriven: last }: JobFacts): boolean {
  return last !== undefined && last.failed > 0 && last.failed === last.batches;
}

function repair(facts: JobFacts): string {
  const redrive =
    "a redrive runs only the failed batches again, with the version that the job was submitted to";
  if (facts.ended === undefined) return `once the job has ended, ${redrive}`;
  return allFailedAgain(facts)
    ? "another redrive fails in the same way until the cause is corrected; if the project was at fault, deploy it and submit again"
    : `${redrive}, so it repairs causes outside the project; if the project was at fault, deploy it and submit again`;
}

function attemptsFail({ apiName, jobId, failedAttempts, succeeded }: JobFacts): Finding {
  return found(
    "attempts_fail",
    "warning",
    `${count(failedAttempts, "attempt")} failed; the batches are tried again`,
    {
      evidence: [`${count(succeeded, "batch")} succeeded, none has failed finally`],
      cure: "the log has the exceptions; max_receive_count of the dead letter queue says how often a batch is tried",
      command: `quern job logs ${apiName} ${jobId}`,
    },
  );
}

/** Where it was raised: the last line of a traceback that names a file. */
function placeOf(traceback: string): string | undefined {
  const lines = traceback.split("\n");
  const at = lines.findLastIndex((line) => /^\s*File ".*", line \d+/.test(line));
  if (at < 0) return undefined;
  const code = lines[at + 1]?.trim() ?? "";
  return short(`raised at ${lines[at]!.trim()}${code === "" ? "" : `: ${code}`}`, 300);
}

/** Its type, and what its messages have in common. */
function commonOf({ type, common }: FailureFacts): string {
  return common === "" ? type : `${type}: ${common}`;
}

function exampleOf({ batches, firstBatch, common, message }: FailureFacts): string {
  if (batches === 1) return ` (batch ${firstBatch})`;
  return `; the first is batch ${firstBatch}${message === common ? "" : `: ${short(message)}`}`;
}
