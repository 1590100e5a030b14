/** src/explain/api: from facts to findings, also about what is hard to make for real. */
import { describe, expect, it } from "vitest";
import type { ApiFacts, RolloutFacts, TrafficFacts } from "../../src/explain/api/api-facts.ts";
import { explainApi } from "../../src/explain/api/explain-api.ts";
import { found } from "../../src/explain/finding.ts";
import { API, ROLLOUT, TRAFFIC, tallyOf } from "../harness/facts.ts";

const MIB = 1024 * 1024;
const rollout = (more: Partial<RolloutFacts>): Partial<ApiFacts> => ({ rollout: { ...ROLLOUT, ...more } });
const traffic = (more: Partial<TrafficFacts>): Partial<ApiFacts> => ({ traffic: { ...TRAFFIC, ...more } });
const down = { upToDate: 0, replicas: [] };
const failed = (kind: NonNullable<RolloutFacts["failure"]>["kind"]) =>
  rollout({ ...down, failure: { kind, message: "because" } });
const starting = (ageS: number) => rollout({ ...down, replicas: [replica({ state: "initializing", ageS })] });
const replica = (more: Partial<RolloutFacts["replicas"][number]>) => ({ ...ROLLOUT.replicas[0]!, ...more });
const times = (number: number, wait: number, took: number) =>
  Array.from({ length: number }, () => ({ wait, took }));
const refused = (code: string) => traffic({ tally: tallyOf([], { rejected: { [code]: 3 } }) });
const old = { replicas: [replica({ isNew: false })], upToDate: 0 };

const SITUATIONS: [string, string, Partial<ApiFacts>, RegExp][] = [
  ["version_unreadable", "error", { unreadable: "spec_json is no JSON" }, /cannot be read/],
  ["requirements_failed", "error", failed("requirements"), /requirements cannot be installed/],
  ["start_timed_out", "error", failed("timeout"), /longer than predictor.startup_timeout/],
  ["start_out_of_memory", "error", failed("memory"), /ran out of memory/],
  ["init_failed", "error", failed("init"), /__init__ fails/],
  ["worker_died_in_start", "error", failed("death"), /dies before it is ready/],
  ["start_failed", "error", failed("other"), /cannot be started/],
  [
    "rollout_failing",
    "warning",
    rollout({ ...old, failure: { kind: "init", message: "no" } }),
    /__init__ fails.*still serves/,
  ],
  ["starting", "info", starting(3), /1 replica starting/],
  ["starting", "info", rollout(down), /0 of 1 replica serve; others are about to start/],
  ["start_slow", "warning", starting(301), /__init__ takes long: 5m 1s of the 10m 0s/],
  ["installing", "info", rollout({ ...down, installingS: 10 }), /being installed, for 10 s/],
  ["installing", "warning", rollout({ ...down, installingS: 100 }), /being installed, for 1m 40s/],
  [
    "compute_held",
    "error",
    rollout({ ...down, lacks: { cpus: 2, memoryBytes: 0, gpus: 0 } }),
    /CPUs that API big and others hold/,
  ],
  [
    "compute_held",
    "error",
    rollout({ ...down, lacks: { cpus: 1, memoryBytes: 0, gpus: 1 } }),
    /GPUs that API small holds/,
  ],
  [
    "rollout_waits",
    "warning",
    rollout({ ...old, lacks: { cpus: 2, memoryBytes: 0, gpus: 0 } }),
    /beside the version that serves/,
  ],
  [
    "compute_too_large",
    "error",
    rollout({ ...down, lacks: { cpus: 1, memoryBytes: 9000 * MIB, gpus: 0 } }),
    /more memory than the server has/,
  ],
  [
    "memory_near_limit",
    "warning",
    rollout({
      replicas: [replica({ memory: { bytes: 50 * MIB, peakBytes: 91 * MIB, limitBytes: 100 * MIB } })],
    }),
    /within 10 % of its memory limit of 100 MiB/,
  ],
  ["at_max_replicas", "warning", { ...rollout({ max: 1 }), ...traffic({ inFlight: 2 }) }, /1 replica that/],
  [
    "queue_wait_dominates",
    "warning",
    traffic({ tally: tallyOf(times(10, 0.9, 1)) }),
    /for a free replica: 90 %/,
  ],
  ["queue_wait_dominates", "warning", traffic({ waiting: 5 }), /Requests mostly wait/],
  ["predict_slow", "warning", traffic({ tally: tallyOf(times(10, 0.1, 2)) }), /itself is slow/],
  [
    "predict_errors",
    "warning",
    traffic({ tally: tallyOf(times(10, 0, 0.1), { answers: { "5xx": 2 } }) }),
    /20 % of requests fail/,
  ],
  ["rejected_not_ready", "warning", refused("api_not_ready"), /3 requests refused because no replica/],
  ["rejected_queue_full", "warning", refused("queue_full"), /3 requests refused/],
  ["rejected_other", "info", refused("malformed_payload"), /3 requests refused for other reasons/],
];

describe("explainApi", () => {
  it.each(SITUATIONS)("finds %s (%s) in %j", (cause, severity, facts, title) => {
    const { findings } = explainApi({ ...API, ...facts });
    const finding = findings.find((one) => one.cause === cause);
    expect(finding, JSON.stringify(findings)).toMatchObject({ severity });
    expect(finding!.title).toMatch(title);
  });

  it.each([
    ["predict() takes more of the time", times(10, 0.9, 2.1), 9, ["predict_slow", "queue_wait_dominates"]],
    ["the wait takes more of it", times(10, 3, 4.2), 9, ["queue_wait_dominates", "predict_slow"]],
    ["predict() is fast", times(10, 3, 3.1), 9, ["queue_wait_dominates"]],
    ["nobody waits", times(10, 0, 2.1), 0, ["predict_slow"]],
  ] as const)(
    "names first what takes most of the time if requests wait and %s",
    (_, taken, waiting, causes) => {
      const { findings } = explainApi({ ...API, ...traffic({ tally: tallyOf(taken), waiting }) });
      expect(findings.map(({ cause }) => cause)).toEqual(causes);
      if (findings.length > 1)
        expect(findings.find(({ cause }) => cause === "predict_slow")!.title).toBe(
          "predict() itself is slow: 1.2 s on average, without the wait",
        );
    },
  );

  it("does not call predict() slow for requests that were refused before it", () => {
    const refusedLate = { ...tallyOf([...times(5, 0.5, 0.6)]) };
    const late = tallyOf(times(20, 0, 60)).duration;
    const duration = {
      buckets: refusedLate.duration.buckets.map((count, at) => count + late.buckets[at]!),
      sum_s: refusedLate.duration.sum_s + late.sum_s,
    };
    const { findings } = explainApi({
      ...API,
      ...traffic({ tally: { ...refusedLate, duration }, waiting: 9 }),
    });
    expect(findings.map(({ cause }) => cause)).toEqual(["queue_wait_dominates"]);
  });

  it("says that nothing is wrong if nothing is", () => {
    const { summary, findings } = explainApi({ ...API, ...traffic({ tally: tallyOf(times(200, 0, 0.04)) }) });
    expect([summary, findings.length]).toEqual(["Nothing is wrong with x", 1]);
    expect(findings[0]!.evidence).toContain(
      "200 requests in the last 5m 0s, 0 % of them with a 5xx status; 0 in flight",
    );
  });

  it.each([
    ["a slow request of few", traffic({ tally: tallyOf(times(4, 0.9, 1)) })],
    ["a short wait", traffic({ tally: tallyOf(times(100, 0.008, 0.01)) })],
    ["memory far from its limit", rollout({ replicas: [replica({ memory: memory(89) })] })],
    ["a failure that is over", rollout({ failure: { kind: "init", message: "no" } })],
    [
      "5xx of the gateway alone",
      traffic({ tally: tallyOf(times(10, 0, 0.1), { answers: { "5xx": 3 }, rejected: {} }) }),
      "predict_errors",
    ],
  ] as [string, Partial<ApiFacts>, string?][])("does not complain about %s", (_, facts, only) => {
    const wrong = explainApi({ ...API, ...facts }).findings.filter(({ severity }) => severity !== "info");
    expect(wrong.map(({ cause }) => cause)).toEqual(only === undefined ? [] : [only]);
  });

  it("tells errors of a few requests after what makes all of them slow", () => {
    const finding = found("became_slow", "warning", "Requests have been slow since 13:58");
    const troubles = [{ kind: "slow" as const, isOpen: true, finding, over: finding }];
    const causes = (failed: number) => {
      const tally = tallyOf(times(100, 0, 0.1), { answers: { "5xx": failed } });
      return explainApi({ ...API, ...traffic({ tally }), troubles }).findings.map(({ cause }) => cause);
    };
    expect(causes(1)).toEqual(["became_slow", "predict_errors"]);
    expect(causes(2)).toEqual(["predict_errors", "became_slow"]);
  });

  it.each([
    ["so many have succeeded since", { agoS: 20, requestsSince: 120 }, "info"],
    ["too few have succeeded since", { agoS: 20, requestsSince: 20 }, "warning"],
    ["the last one failed just now", { agoS: 3, requestsSince: 120 }, "warning"],
  ] as const)("says until when requests failed if %s", (_, last, severity) => {
    const tally = tallyOf(times(200, 0, 0.1), { answers: { "5xx": 5 } });
    const lastFailures = { atS: Date.parse("2026-11-28T14:08:57Z") / 1000, ...last };
    const { findings } = explainApi({ ...API, ...traffic({ tally, lastFailures }) });
    expect(findings[0]).toMatchObject({ cause: "predict_errors", severity });
    expect(findings[0]!.title).toBe(
      severity === "info"
        ? "6 % of requests failed in predict() until 2026-11-28T14:08Z, none of 120 requests since"
        : "3 % of requests fail in predict()",
    );
  });

  describe("after another version took over", () => {
    const atS = Date.parse("2026-11-29T21:04:27Z") / 1000;
    const tally = tallyOf(times(292, 0, 0.1), { answers: { "5xx": 41 } });
    const finding = found("became_slow", "warning", "Requests have been failing since 20:58");
    const over = found("was_slow", "info", "Requests failed from 20:58 to 21:05; it is over");
    const troubles = [{ kind: "failing" as const, isOpen: true, finding, over }];
    const explained = (more: Partial<TrafficFacts>, facts: Partial<ApiFacts> = {}) =>
      explainApi({ ...API, troubles, ...traffic({ tally, ...more }), ...facts });
    const ids = { version: "b".repeat(24), former: "a".repeat(24) };
    const switched = { how: "rolled_back" as const, ids, atS, requests: 203, failed: 0 };

    it("judges failures from that moment, and nothing contradicts it", () => {
      const { summary, findings } = explained({ switched });
      expect(summary).toBe("Rolled back at 2026-11-29T21:04:27Z; since then 203 requests, 0 failed");
      expect(findings[0]!.evidence).toContain("before, 41 of 89 requests failed in predict(): 46 %");
      expect(findings.map(({ title, severity }) => [title, severity]).slice(1)).toEqual([
        ["Requests failed from 20:58 to 21:05; it is over", "info"],
        ["Nothing is wrong with x", "info"],
      ]);
      expect(JSON.stringify(findings)).not.toMatch(/earlier version|5xx/);
    });

    it("says so from its first second, also of a deployment", () => {
      const { summary } = explained({ switched: { ...switched, how: "deployed", requests: 0 } });
      expect(summary).toBe(
        "A new version was deployed at 2026-11-29T21:04:27Z; since then 0 requests, 0 failed",
      );
    });

    it("counts the failures of that version alone", () => {
      const { findings } = explained({ switched: { ...switched, requests: 100, failed: 30 } });
      expect(findings[0]).toMatchObject({
        severity: "warning",
        title: "Rolled back at 2026-11-29T21:04:27Z; 30 % of requests since then fail in predict()",
        evidence: ["30 requests of 100 failed since then", "version bbbbbbbbbbbb… replaced aaaaaaaaaaaa…"],
        // Not the one that was just left.
        command: "quern logs x",
        cure: expect.stringContaining("earlier version"),
      });
      const deployed = explained({ switched: { ...switched, how: "deployed", requests: 100, failed: 30 } });
      expect(deployed.findings[0]!.command).toBe(`quern rollback x ${ids.former}`);
      expect(findings[1]!.title).toBe("Requests have been failing since 20:58");
    });

    it("advises no earlier version while the new one starts", () => {
      const replicas = [replica({ isNew: false }), replica({ state: "initializing" })];
      const { findings } = explained({}, rollout({ upToDate: 0, replicas }));
      const failing = findings.find(({ cause }) => cause === "predict_errors")!;
      expect(failing.cure).toMatch(/another version is starting/);
      expect(failing.cure).not.toMatch(/earlier version/);
    });
  });

  it("gives the share of the time of trouble, which good requests do not thin out", () => {
    for (const good of [120, 1_000, 5_000]) {
      const tally = tallyOf(times(89 + good, 0, 0.1), { answers: { "5xx": 43 } });
      const lastFailures = { atS: 0, agoS: 60, requestsSince: good };
      const { summary } = explainApi({ ...API, ...traffic({ tally, lastFailures }) });
      expect(summary).toMatch(/^48 % of requests failed in predict\(\) until/);
    }
  });

  it("does not waver between most and some of the requests", () => {
    const severity = (failed: number, wereMost: boolean) => {
      const tally = tallyOf(times(100, 0, 0.1), { answers: { "5xx": failed } });
      return explainApi({ ...API, ...traffic({ tally, wereMost }) }).findings[0]!.severity;
    };
    expect([severity(49, false), severity(51, false)]).toEqual(["warning", "error"]);
    expect([severity(49, true), severity(41, true), severity(39, true)]).toEqual([
      "error",
      "error",
      "warning",
    ]);
  });

  it("counts no refusal of the gateway as an error of predict()", () => {
    const tally = tallyOf(times(10, 0, 0.1), { answers: { "5xx": 3 }, rejected: { queue_full: 3 } });
    const { findings } = explainApi({ ...API, ...traffic({ tally }) });
    expect(findings.map(({ cause }) => cause)).toEqual(["rejected_queue_full"]);
  });

  it("says what is wrong behind a splitter, and nothing else about it", () => {
    const findings = [found("init_failed", "error", "bad"), found("starting", "info", "soon")];
    const targets = [{ name: "a", weight: 60, findings }];
    const explained = explainApi({ ...API, kind: "TrafficSplitter", rollout: undefined, targets });
    expect(explained.findings.map(({ title }) => title)).toEqual(["a (60 %): bad"]);
  });
});

function memory(mib: number) {
  return { bytes: mib * MIB, peakBytes: mib * MIB, limitBytes: 100 * MIB };
}
