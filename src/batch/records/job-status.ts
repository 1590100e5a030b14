/**
 * The table of a job's status changes (docs/contract/jobs.md#job-moves), and the pure decision of how a job ends. The
 * diagram in docs/reference/job-status.md is generated from `JOB_MOVES`.
 */
import { COMPLETE_STATUSES, type JobReason, type JobStatus } from "../../contracts/jobs.ts";

const TERMINAL = [
  "status_succeeded",
  "status_completed_with_failures",
  "status_enqueue_failed",
  "status_worker_error",
  "status_worker_oom",
  "status_timed_out",
  "status_stopped",
  "status_unexpected_error",
] as const satisfies readonly JobStatus[];

export const JOB_MOVES: Record<JobStatus, readonly JobStatus[]> = {
  status_unknown: [],
  status_enqueuing: ["status_running", ...TERMINAL.filter((to) => !COMPLETE_STATUSES.has(to))],
  status_running: TERMINAL,
  status_succeeded: [],
  status_completed_with_failures: [],
  status_enqueue_failed: [],
  status_worker_error: [],
  status_worker_oom: [],
  status_timed_out: [],
  status_stopped: [],
  status_unexpected_error: [],
};

/** Status changes that begin a new round of an ended job, by redrive or resume (docs/contract/jobs.md#round-rules). */
export const ROUND_MOVES: Partial<Record<JobStatus, readonly JobStatus[]>> = {
  status_completed_with_failures: ["status_running"],
  status_enqueue_failed: ["status_enqueuing", "status_running"],
  status_worker_error: ["status_enqueuing", "status_running"],
  status_worker_oom: ["status_enqueuing", "status_running"],
  status_timed_out: ["status_enqueuing", "status_running"],
  status_stopped: ["status_enqueuing", "status_running"],
  status_unexpected_error: ["status_enqueuing", "status_running"],
};

export function isTerminal(status: JobStatus): boolean {
  return (TERMINAL as readonly JobStatus[]).includes(status);
}

/** The statuses from which a job may move to `to`: the `where status in (…)` of an update. */
export function movesInto(to: JobStatus, within: "one round" | "new round" = "one round"): JobStatus[] {
  const moves = within === "one round" ? JOB_MOVES : ROUND_MOVES;
  return (Object.keys(JOB_MOVES) as JobStatus[]).filter((from) => moves[from]?.includes(to));
}

/** Why a job ends: all its batches are settled, or something ends it earlier. */
export type EndCause =
  | { kind: "settled" }
  | { kind: "stopped" }
  | { kind: "timed_out"; timeoutS: number }
  | { kind: "worker_error" | "worker_oom"; reason: JobReason }
  | { kind: "enqueue_failed"; reason: JobReason }
  | { kind: "unexpected"; reason: JobReason };

export interface SettledCounts {
  total: number;
  succeeded: number;
  failedBatches: number;
  /** Failed batches whose worker died in them: `failedByOom` for lack of memory, `failedByDeath` the others. */
  failedByDeath: number;
  failedByOom: number;
  /** Describes the first of them. */
  firstDeath?: string | undefined;
  /** Details of this death. */
  evidence?: JobReason["evidence"];
}

export interface Ending {
  status: JobStatus;
  reason?: JobReason;
}

export const STOPPED: Ending & { reason: JobReason } = {
  status: "status_stopped",
  reason: { code: "stopped", message: "the job was stopped on request" },
};

/** The final status, from exact durable counts. */
export function decideEnding(cause: EndCause, counts: SettledCounts): Ending {
  switch (cause.kind) {
    case "stopped":
      return STOPPED;
    case "timed_out":
      return { status: "status_timed_out", reason: timedOut(cause.timeoutS) };
    case "worker_error":
      return { status: "status_worker_error", reason: cause.reason };
    case "worker_oom":
      return { status: "status_worker_oom", reason: cause.reason };
    case "enqueue_failed":
      return { status: "status_enqueue_failed", reason: cause.reason };
    case "unexpected":
      return { status: "status_unexpected_error", reason: cause.reason };
    case "settled":
      return settledEnding(counts);
    default: {
      const never: never = cause;
      throw new Error(`unknown cause ${JSON.stringify(never)}`);
    }
  }
}

function settledEnding({ total, succeeded, failedBatches, ...deadly }: SettledCounts): Ending {
  if (succeeded + failedBatches !== total) {
    const message = `${succeeded} batches succeeded and ${failedBatches} failed, but ${total} were enqueued`;
    return {
      status: "status_unexpected_error",
      reason: {
        code: "counts_differ",
        message,
        hint: "this is a bug in Quern; please report it with the job's log",
      },
    };
  }
  const { failedByDeath, failedByOom, firstDeath, evidence } = deadly;
  const first = firstDeath === undefined ? "" : `; ${firstDeath}`;
  const known = evidence === undefined ? {} : { evidence };
  if (failedByOom > 0) {
    const message = `${failedByOom} of ${total} batches failed because they ran out of memory${first}`;
    const hint = "`quern job failures API JOB` shows them; use a smaller batch_size, or a larger compute.mem";
    return { status: "status_worker_oom", reason: { code: "out_of_memory", message, hint, ...known } };
  }
  if (failedByDeath > 0) {
    const message = `${failedByDeath} of ${total} batches failed because their worker died${first}`;
    return {
      status: "status_worker_error",
      reason: {
        code: "worker_died",
        message,
        hint: "`quern job failures API JOB` shows them with the last output of their workers",
        ...known,
      },
    };
  }
  if (failedBatches > 0) {
    const message = `${failedBatches} of ${total} batches failed`;
    return {
      status: "status_completed_with_failures",
      reason: {
        code: "batches_failed",
        message,
        hint: "`quern job failures API JOB` shows them with their exceptions and items",
      },
    };
  }
  return { status: "status_succeeded" };
}

function timedOut(timeoutS: number): JobReason {
  return {
    code: "timed_out",
    message: `the job did not end within its timeout of ${timeoutS} s`,
    hint: "submit it with a longer timeout, or with more workers",
  };
}
