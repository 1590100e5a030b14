/** src/explain/job: from facts to findings, also about what is hard to make for real. */
import { describe, expect, it } from "vitest";
import { describeDelay } from "../../src/batch/workers/describe-delay.ts";
import type { JobReason, JobStatus } from "../../src/contracts/jobs.ts";
import { explainJob } from "../../src/explain/job/explain-job.ts";
import type { JobFacts } from "../../src/explain/job/job-facts.ts";
import { JOB, JOB_WORKER } from "../harness/facts.ts";

const NOBODY = { count: 0, waiting: 0, apis: [] };
const ended = (status: JobStatus, code: string, message = "because", more: Partial<JobReason> = {}) => ({
  ...{ status, phase: "none" as const, workers: [], ended: { tookS: 90 } },
  reason: { code, message, ...more },
});
const failure = (batches: number, type: string, message = "no", common = message) => ({
  ...{ batches, firstBatch: 3, type, message, common },
  traceback:
    'Traceback (most recent call last):\n  File "/p.py", line 4, in predict\n    return 1 / 0\nE: no',
});
const busy = (forS: number) => ({ workers: [{ ...JOB_WORKER, busy: { batch: 7, forS } }] });
const input = { bytes: 6e6, readS: 9, sinceS: 10, isExhausted: false };
const idle = [{ ...JOB_WORKER, busy: undefined, idleShare: 0.8 }];
const enqueuing = { ...{ status: "status_enqueuing" as const, total: undefined, averageS: undefined } };

const SITUATIONS: [string, string, Partial<JobFacts>, RegExp][] = [
  ["job_paused", "warning", { paused: { by: "user", since: "t" } }, /is paused/],
  ["api_paused", "warning", { paused: { by: "api", since: "t" } }, /paused with its API x/],
  ["job_paused_in_copy", "warning", { paused: { by: "copy", since: "t" } }, /copy of a data directory/],
  ["job_ending", "info", { isEnding: true }, /end of the job is being written/],
  ["store_unreachable", "error", { storeError: "503" }, /does not respond/],
  [
    "enqueue_turn",
    "info",
    { ...enqueuing, phase: "preparing", waiting: "the job waits until it may be enqueued" },
    /waits for its turn/,
  ],
  [
    "reading_input",
    "info",
    { ...enqueuing, phase: "enqueuing", enqueuedBatches: 1200 },
    /1,200 batches so far/,
  ],
  ["compute_held", "error", { counts: counts({ pending: 2 }), need: cpus(2) }, /2 workers wait for CPUs/],
  [
    "compute_held",
    "warning",
    { counts: counts({ stalled: 1, running: 1 }), need: cpus(2) },
    /1 worker waits for CPUs that API big/,
  ],
  [
    "open_files_short",
    "warning",
    {
      ...{ counts: counts({ pending: 2 }), need: cpus(2) },
      waiting: "2 workers wait for open files: the server may open 128",
    },
    /too few files/,
  ],
  [
    "compute_held",
    "error",
    {
      ...{ counts: counts({ pending: 2 }), need: cpus(5), waiting: "2 workers wait for compute: no node" },
      compute: { ...JOB.compute, isOfCluster: true },
    },
    /2 workers wait for pods of the cluster/,
  ],
  ["compute_too_large", "error", { counts: counts({ pending: 1 }), need: cpus(5) }, /more CPUs/],
  ["starved", "warning", { input, workers: idle }, /idle, because the store delivers only 666.7 kB\/s/],
  ["straggler", "warning", busy(4), /Batch 7 has run for 4 s; the others take 100 ms/],
  ["timeout_near", "warning", { timeout: { allS: 60, leftS: 5 } }, /5 s of 1m 0s are left/],
  ["timeout_near", "warning", { timeout: { allS: 60, leftS: 30 }, averageS: 1 }, /30 s of 1m 0s are left/],
  ["attempts_fail", "warning", { failedAttempts: 3 }, /3 attempts failed/],
  [
    "batches_fail",
    "warning",
    { failedBatches: 4, failures: [failure(3, "ValueError"), failure(1, "KeyError")] },
    /4 of 54 batches failed, 75 % of them with ValueError: no/,
  ],
  [
    "out_of_memory",
    "error",
    { succeeded: 1, failedBatches: 2, failures: [failure(2, "OutOfMemory")] },
    /memory/,
  ],
  ["workers_die", "warning", { failedBatches: 1, failures: [failure(1, "WorkerDied")] }, /worker died/],
  [
    "batches_time_out",
    "warning",
    { failedBatches: 1, failures: [failure(1, "PredictionTimeout")] },
    /timeout/,
  ],
  ["messages_wait", "warning", { letters: { queue: "q", messages: 2, oldestS: 60 } }, /2 messages could not/],
  ["job_succeeded", "info", { ...ended("status_succeeded", ""), reason: undefined }, /all 50 batches/],
  ["job_stopped", "info", ended("status_stopped", "stopped"), /stopped on request/],
  ["job_timed_out", "error", ended("status_timed_out", "timed_out"), /within its timeout/],
  ["requirements_failed", "error", ended("status_worker_error", "requirements_failed"), /requirements/],
  ["init_failed", "error", ended("status_worker_error", "set_up_failed"), /__init__ failed/],
  ["workers_die", "error", ended("status_worker_error", "workers_keep_dying"), /kept dying/],
  [
    "out_of_memory",
    "error",
    ended("status_worker_oom", "set_up_failed", "no", { evidence: { out_of_memory: "limit" } }),
    /ran out of memory/,
  ],
  ["bucket_missing", "error", ended("status_enqueue_failed", "bucket_not_found"), /bucket does not exist/],
  ["store_forbidden", "error", ended("status_enqueue_failed", "store_forbidden"), /denied access/],
  ["store_unreachable", "error", ended("status_enqueue_failed", "store_unreachable"), /too long/],
  ["input_failed", "error", ended("status_enqueue_failed", "input_changed"), /changed while the job ran/],
  ["input_failed", "error", ended("status_enqueue_failed", "invalid_line"), /failed: because/],
  [
    "output_failed",
    "error",
    ended("status_unexpected_error", "output_failed"),
    /output could not be written/,
  ],
  ["version_gone", "error", ended("status_unexpected_error", "e", "version a of x is gone"), /is gone/],
  ["internal_error", "error", ended("status_unexpected_error", "unexpected_error"), /failed: because/],
  ["job_failed", "error", ended("status_worker_error", "on_job_complete_failed"), /failed: because/],
];

describe("explainJob", () => {
  it.each(SITUATIONS)("finds %s (%s) in %j", (cause, severity, facts, title) => {
    const { findings } = explainJob({ ...JOB, ...facts });
    const finding = findings.find((one) => one.cause === cause);
    expect(finding, JSON.stringify(findings)).toMatchObject({ severity });
    expect(finding!.title).toMatch(title);
  });

  it("says how far it is, and how long it still needs", () => {
    const { summary, findings } = explainJob(JOB);
    expect(summary).toBe("The job runs: 50 % of 100 batches are settled");
    expect(findings[0]!.evidence).toContain("it needs about 5 s more");
  });

  it.each([
    ["a batch that is not ten times as long", busy(3.5), { averageS: 0.5 }],
    ["a batch that is short", busy(2.9), {}],
    ["idle workers whose input is read", { input: { ...input, isExhausted: true }, workers: idle }, {}],
    ["a slow store that keeps up", { input }, {}],
    ["a timeout that is far", { timeout: { allS: 60, leftS: 40 } }, {}],
  ] as [string, Partial<JobFacts>, Partial<JobFacts>][])("does not complain about %s", (_, facts, more) => {
    expect(explainJob({ ...JOB, ...facts, ...more }).findings.map(({ cause }) => cause)).toEqual([
      "all_well",
    ]);
  });

  it.each([
    [{ before: 0, yielding: 0 }, "it is the next to get some"],
    [{ before: 2, yielding: 0 }, "2 others come before it"],
    [{ before: 0, yielding: 1 }, "1 worker of another job yields to it after the batch in hand"],
  ])("says whose turn it is: %j", (delay, order) => {
    const waiting = `1 worker waits for compute: each takes 2 CPU${describeDelay(delay, NOBODY, true)}`;
    const { findings } = explainJob({ ...JOB, waiting, counts: counts({ pending: 1 }), need: cpus(2) });
    expect(findings[0]!.evidence).toContain(order);
  });

  it("says that jobs of higher priority come first", () => {
    const above = { count: 2, waiting: 1, apis: ["a"] };
    const waiting = `1 worker waits for compute: x${describeDelay({ before: 1, yielding: 0 }, above, true)}`;
    const { findings } = explainJob({ ...JOB, waiting, counts: counts({ pending: 1 }), need: cpus(2) });
    expect(findings[0]!.evidence).toContain("2 jobs of higher priority come first (of API a)");
  });

  it("says only how many failed while nobody has counted their errors", () => {
    const { findings } = explainJob({ ...JOB, failedBatches: 2 });
    expect(findings[0]).toMatchObject({ cause: "batches_fail", command: "quern explain x j" });
  });

  it("names an error by what its messages have in common, with the first as an example", () => {
    const failures = [
      failure(100, "OSError", "image 4 cannot be read", "image … cannot be read"),
      failure(30, "KeyError", "'x'"),
      failure(1, "StopIteration", ""),
    ];
    const facts = {
      ...ended("status_completed_with_failures", "batches_failed"),
      failures,
      failedBatches: 131,
    };
    const [finding] = explainJob({ ...JOB, ...facts }).findings;
    expect(finding!.title).toMatch(/76 % of them with OSError: image … cannot be read$/);
    expect(finding!.evidence.slice(0, 3)).toEqual([
      "100 batches with OSError: image … cannot be read; the first is batch 3: image 4 cannot be read",
      "30 batches with KeyError: 'x'; the first is batch 3",
      "1 batch with StopIteration (batch 3)",
    ]);
    expect(finding!.command).toBe("quern job redrive x j --like 3");
  });

  it.each([
    [3, 0, "round 2 ran these 3 batches again; all failed again", /^quern job failures x j --by-error$/],
    [4, 0, "round 2 ran 4 failed batches again; all failed again", /^quern job failures/],
    [5, 2, "round 2 ran 5 failed batches again; 2 succeeded, 3 failed again", /^quern job redrive/],
  ])("says what a redrive of %i batches of which %i succeeded did", (batches, succeeded, says, command) => {
    const failures = [failure(3, "OSError"), failure(1, "KeyError")];
    const end = ended("status_completed_with_failures", "batches_failed");
    const redriven = { round: 2, batches, succeeded, failed: batches - succeeded };
    const [finding] = explainJob({ ...JOB, ...end, failures, failedBatches: 4, redriven }).findings;
    expect(finding!.evidence[0]).toBe(says);
    expect(finding!.command).toMatch(command);
    expect(/a redrive runs only/.test(finding!.cure)).toBe(succeeded > 0);
  });

  it("names no holder if the caller may not know them", () => {
    const compute = { ...JOB.compute, holders: undefined };
    const { findings } = explainJob({ ...JOB, compute, counts: counts({ pending: 1 }), need: cpus(2) });
    expect(findings[0]!.title).toBe("1 worker waits for CPUs");
    expect(JSON.stringify(findings)).not.toMatch(/API big/);
  });
});

function counts(more: Partial<JobFacts["counts"]>): JobFacts["counts"] {
  return { ...JOB.counts, running: 0, ...more };
}

function cpus(number: number) {
  return { cpus: number, memoryBytes: 0, gpus: 0 };
}
