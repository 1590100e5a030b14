/** A job's moves, and how it ends. */
import { describe, expect, it } from "vitest";
import {
  decideEnding,
  type EndCause,
  isTerminal,
  JOB_MOVES,
  movesInto,
  ROUND_MOVES,
  type SettledCounts,
} from "../../../src/batch/records/job-status.ts";
import { JOB_STATUSES, type JobStatus } from "../../../src/contracts/jobs.ts";

const counts = (given: Partial<SettledCounts> = {}): SettledCounts => ({
  total: 10,
  succeeded: 10,
  failedBatches: 0,
  failedByDeath: 0,
  failedByOom: 0,
  ...given,
});
const SETTLED: EndCause = { kind: "settled" };
const EVIDENCE = { batch_index: 4, signal: "SIGKILL" };
const GIVEN = { code: "given", message: "what happened", hint: "what to do" };
/** Counts under which a settled job would end in another way. */
const OTHER_COUNTS = counts({ succeeded: 0, failedBatches: 3, failedByDeath: 1, failedByOom: 1 });

describe("the end of a job", () => {
  it.each<[string, Partial<SettledCounts>, JobStatus, string | undefined]>([
    ["all batches succeeded", {}, "status_succeeded", undefined],
    ["it had no batch", { total: 0, succeeded: 0 }, "status_succeeded", undefined],
    [
      "a batch failed",
      { succeeded: 9, failedBatches: 1 },
      "status_completed_with_failures",
      "1 of 10 batches failed",
    ],
    [
      "all failed",
      { succeeded: 0, failedBatches: 10 },
      "status_completed_with_failures",
      "10 of 10 batches failed",
    ],
    [
      "a worker died in a failed batch",
      { succeeded: 7, failedBatches: 3, failedByDeath: 1 },
      "status_worker_error",
      "1 of 10 batches failed because their worker died",
    ],
    [
      "it is known how the worker died",
      { succeeded: 9, failedBatches: 1, failedByDeath: 1, firstDeath: "batch 4: killed by SIGSEGV" },
      "status_worker_error",
      "1 of 10 batches failed because their worker died; batch 4: killed by SIGSEGV",
    ],
    [
      "one worker ran out of memory and two died otherwise",
      { succeeded: 7, failedBatches: 3, failedByDeath: 2, failedByOom: 1 },
      "status_worker_oom",
      "1 of 10 batches failed because they ran out of memory",
    ],
    [
      "it is known how the memory ran out",
      { succeeded: 8, failedBatches: 2, failedByOom: 2, firstDeath: "batch 4: over its limit" },
      "status_worker_oom",
      "2 of 10 batches failed because they ran out of memory; batch 4: over its limit",
    ],
    [
      "fewer are settled than were enqueued",
      { succeeded: 8, failedBatches: 1 },
      "status_unexpected_error",
      "8 batches succeeded and 1 failed, but 10 were enqueued",
    ],
    [
      "more are settled than were enqueued",
      { succeeded: 10, failedBatches: 1, failedByOom: 1 },
      "status_unexpected_error",
      "10 batches succeeded and 1 failed, but 10 were enqueued",
    ],
  ])("has the right status if %s", (_, given, status, message) => {
    const ending = decideEnding(SETTLED, counts(given));
    expect(ending.status).toBe(status);
    expect(ending.reason?.message).toBe(message);
  });

  it.each<[string, Partial<SettledCounts>, RegExp]>([
    ["counts_differ", { succeeded: 9 }, /report/],
    [
      "out_of_memory",
      { succeeded: 9, failedBatches: 1, failedByOom: 1 },
      /`quern job failures API JOB`.*mem/,
    ],
    [
      "worker_died",
      { succeeded: 9, failedBatches: 1, failedByDeath: 1 },
      /`quern job failures API JOB`.*work/,
    ],
    ["batches_failed", { succeeded: 9, failedBatches: 1 }, /`quern job failures API JOB`.*exceptions/],
  ])("has the code %s and a hint, and evidence only if it is known", (code, given, hint) => {
    const { reason } = decideEnding(SETTLED, counts(given));
    expect(reason).toStrictEqual({ code, message: expect.any(String), hint: expect.stringMatching(hint) });
  });

  it.each<Partial<SettledCounts>>([{ failedByDeath: 1 }, { failedByOom: 1 }])(
    "shows the evidence of a death (%j)",
    (death) => {
      const given = { succeeded: 9, failedBatches: 1, ...death, evidence: EVIDENCE };
      expect(decideEnding(SETTLED, counts(given)).reason?.evidence).toEqual(EVIDENCE);
    },
  );

  it.each<[EndCause, JobStatus]>([
    [{ kind: "worker_error", reason: GIVEN }, "status_worker_error"],
    [{ kind: "worker_oom", reason: GIVEN }, "status_worker_oom"],
    [{ kind: "enqueue_failed", reason: GIVEN }, "status_enqueue_failed"],
    [{ kind: "unexpected", reason: GIVEN }, "status_unexpected_error"],
  ])("has the reason of $kind, whatever is settled", (cause, status) => {
    expect(decideEnding(cause, OTHER_COUNTS)).toEqual({ status, reason: GIVEN });
  });

  it("is a stop or a timeout, whatever is settled", () => {
    expect(decideEnding({ kind: "stopped" }, OTHER_COUNTS)).toEqual({
      status: "status_stopped",
      reason: { code: "stopped", message: "the job was stopped on request" },
    });
    expect(decideEnding({ kind: "timed_out", timeoutS: 90 }, OTHER_COUNTS)).toEqual({
      status: "status_timed_out",
      reason: {
        code: "timed_out",
        message: "the job did not end within its timeout of 90 s",
        hint: expect.stringMatching(/timeout/),
      },
    });
  });

  it("rejects an unknown cause", () => {
    expect(() => decideEnding({ kind: "boredom" } as never, counts())).toThrow(
      'unknown cause {"kind":"boredom"}',
    );
  });
});

const UNSETTLED: JobStatus[] = [
  "status_enqueue_failed",
  "status_worker_error",
  "status_worker_oom",
  "status_timed_out",
  "status_stopped",
  "status_unexpected_error",
];
const ENDS: JobStatus[] = ["status_succeeded", "status_completed_with_failures", ...UNSETTLED];

describe("the status changes of a job", () => {
  it("go from enqueuing to running, and from both to an end; no change follows an end", () => {
    expect(JOB_STATUSES.filter(isTerminal).sort()).toEqual([...ENDS].sort());
    for (const status of JOB_STATUSES) {
      const legal =
        status === "status_enqueuing"
          ? ["status_running", ...UNSETTLED]
          : status === "status_running"
            ? ENDS
            : [];
      expect([...JOB_MOVES[status]].sort(), status).toEqual([...legal].sort());
    }
  });

  it.each<[JobStatus, JobStatus[]]>([
    ["status_running", ["status_enqueuing"]],
    ["status_succeeded", ["status_running"]],
    ["status_completed_with_failures", ["status_running"]],
    ["status_stopped", ["status_enqueuing", "status_running"]],
    ["status_enqueuing", []],
    ["status_unknown", []],
  ])("lead to %s from %j", (to, from) => {
    expect(movesInto(to)).toEqual(from);
  });

  it("begin a new round after an end, with enqueuing only if not all was settled", () => {
    expect(movesInto("status_enqueuing", "new round").sort()).toEqual([...UNSETTLED].sort());
    expect(movesInto("status_running", "new round").sort()).toEqual(
      ["status_completed_with_failures", ...UNSETTLED].sort(),
    );
    for (const to of ENDS) expect(movesInto(to, "new round"), to).toEqual([]);
    expect(ROUND_MOVES.status_succeeded).toBeUndefined();
  });
});
