/** What needs a person: the worst first, each with the place where it is. */
import { describe, expect, it } from "vitest";
import type { ApiState } from "../../../src/apis/api-state.ts";
import { attentionOf, type Troubles, troubleOf } from "../../../src/control/overview/attention.ts";
import { JobRates } from "../../../src/control/overview/job-rates.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const NONE: Troubles = {
  ...{
    nowMs: NOW,
    server: [],
    apis: [],
    failing: new Map(),
    slow: new Map(),
    running: [],
    waiting: [],
    ended: [],
    queues: [],
  },
};
const state = (status: ApiState["status"], last_updated = "2026-11-28T11:00:00Z") =>
  ({ name: "iris", status, last_updated }) as ApiState;
const title = (troubles: Partial<Troubles>) =>
  attentionOf({ ...NONE, ...troubles }).map(
    ({ kind, severity, title: text }) => `${kind} ${severity}: ${text}`,
  );

describe("attention", () => {
  it("is paid to nothing if all is well", () => {
    const apis = [{ state: state("live"), health: {}, pausedTime: undefined }];
    expect(attentionOf({ ...NONE, apis })).toEqual([]);
  });

  it("is paid to errors before warnings", () => {
    const queues = [{ name: "letters", messages: 2, hasMore: false, oldest_sent_time: "t" }];
    expect(title({ queues, server: ["the disk is full"] })).toEqual([
      "server error: the disk is full",
      "queue warning: 2 messages in the dead letter queue",
    ]);
  });

  it.each([
    [{ fault: "it crashes" }, "live", "error: it crashes"],
    [{ warning: "too few replicas" }, "live", "warning: too few replicas"],
    [{}, "updating", "warning: its newest version is not ready after ten minutes"],
  ] as const)("is paid to an API with %j and status %s", (health, status, wanted) => {
    expect(title({ apis: [{ state: state(status), health, pausedTime: undefined }] })).toEqual([
      `api ${wanted}`,
    ]);
  });

  it.each([
    ["error", "api error: most requests fail with a 5xx status; `quern explain iris` says why"],
    ["warning", "api warning: some requests fail with a 5xx status; `quern explain iris` says why"],
  ] as const)("is paid to an API whose requests fail (%s)", (severity, wanted) => {
    const api = { state: state("live"), health: {}, pausedTime: undefined };
    expect(title({ apis: [api], failing: new Map([["iris", severity]]) })).toEqual([wanted]);
  });

  it("is paid to an API that an explanation calls slow, and not twice to one that has been failing", () => {
    const apis = [{ state: state("live"), health: {}, pausedTime: undefined }];
    const about = (text: string, isFailing = false) =>
      title({
        apis,
        failing: isFailing ? new Map([["iris", "warning"]]) : new Map(),
        slow: new Map([["iris", { kind: text === slow ? "slow" : "failing", title: text }]]),
      });
    const slow = "Requests have been slow since 2026-11-28T11:40Z";
    const says = "`quern explain iris` says why";
    expect(about(slow)).toEqual([`api warning: ${slow}; ${says}`]);
    const failing = "Requests have been failing since 2026-11-28T11:40Z";
    expect(about(failing)).toEqual([`api warning: ${failing}; ${says}`]);
    expect(about(failing, true)).toEqual([`api warning: some requests fail with a 5xx status; ${says}`]);
    expect(about(slow, true)).toHaveLength(2);
  });

  it("agrees with the word beside the API", () => {
    const slow = new Map([["iris", { kind: "slow", title: "t" }]] as const);
    expect(troubleOf("iris", { failing: new Map([["iris", "error"]]), slow })).toBe("failing");
    expect(troubleOf("iris", { failing: new Map(), slow })).toBe("slow");
    expect(troubleOf("iris", { failing: new Map(), slow: new Map() })).toBeNull();
  });

  it("is paid to a job of which many batches fail while it runs", () => {
    const job = { job_id: "j1", api_name: "iris", paused_time: null };
    const running = [
      { ...job, succeeded: 2548, failed: 208 },
      { ...job, succeeded: 5, failed: 5 },
      { ...job, succeeded: 2548, failed: 100 },
      { ...job, succeeded: 0, failed: 4 },
      { ...job, succeeded: 0, failed: 9, paused_time: "2026-11-28T11:59:00Z" },
    ];
    expect(title({ running })).toEqual([
      "job error: still runs, and 50 % of its batches failed so far",
      "job warning: still runs, and 8 % of its batches failed so far",
    ]);
  });

  it("is not paid to a rollout of less than ten minutes", () => {
    const young = state("updating", "2026-11-28T11:51:00Z");
    expect(title({ apis: [{ state: young, health: {}, pausedTime: undefined }] })).toEqual([]);
  });

  it("is paid to paused APIs, and says how they are continued", () => {
    const apis = [{ state: state("live"), health: {}, pausedTime: "2026-11-28T11:59:00Z" }];
    expect(attentionOf({ ...NONE, apis })).toMatchObject([
      { time: "2026-11-28T11:59:00Z", title: expect.stringContaining("quern unpause iris") },
    ]);
  });

  it("is paid to jobs that ended badly, with the first line of the reason and without secrets", () => {
    const reason = { code: "x", message: `s3://user:p4ssw0rd@host/ failed\nTraceback` };
    const job = { job_id: "j1", api_name: "iris", end_time: "t", reason_json: JSON.stringify(reason) };
    const [failed, partly] = attentionOf({
      ...NONE,
      ended: [
        { ...job, status: "status_completed_with_failures", reason_json: null },
        { ...job, status: "status_worker_error" },
      ],
    });
    expect(failed).toMatchObject({ kind: "job", name: "iris", job_id: "j1", severity: "error", time: "t" });
    expect(failed!.title).not.toMatch(/p4ssw0rd|Traceback/);
    expect(partly).toMatchObject({ severity: "warning", title: "completed with failures" });
  });

  it("is paid to jobs that wait, with what they wait for", () => {
    const waiting = [{ job_id: "j1", api_name: "iris", queued_time: "t", waiting: "4 CPUs" }];
    expect(attentionOf({ ...NONE, waiting })).toMatchObject([
      { job_id: "j1", time: "t", title: "waits for its first worker: 4 CPUs" },
    ]);
  });

  it("counts queues only so far", () => {
    const queues = [{ name: "letters", messages: 5000, hasMore: true, oldest_sent_time: null }];
    expect(title({ queues })).toEqual(["queue warning: 5000 or more messages in the dead letter queue"]);
  });
});

describe("the rate of a job", () => {
  it("is known once it was seen twice, and over the last half minute", () => {
    const rates = new JobRates();
    const note = (settled: number, nowMs: number) => rates.note([{ job_id: "j", settled }], nowMs).get("j");
    expect(note(0, 0)).toBeNull();
    expect(note(10, 500)).toBeNull();
    expect(note(40, 2_000)).toBe(20);
    // Only what was seen at 20 s is young enough.
    expect(note(40, 20_000)).toBe(2);
    expect(note(140, 40_000)).toBe(5);
  });

  it("begins again with a new round of the job", () => {
    const rates = new JobRates();
    rates.note([{ job_id: "j", settled: 100 }], 0);
    expect(rates.note([{ job_id: "j", settled: 3 }], 1_000).get("j")).toBeNull();
    expect(rates.note([{ job_id: "j", settled: 13 }], 2_000).get("j")).toBe(10);
  });
});
