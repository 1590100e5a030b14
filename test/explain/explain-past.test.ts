/** src/explain/past: what differed at a time, from when to when, and what changed just before. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearest, runsOf } from "../../src/explain/past/episodes.ts";
import { explainPast } from "../../src/explain/past/explain-past.ts";
import type { PastChange, PastFacts, PastStepFacts } from "../../src/explain/past/past-facts.ts";
import { recentTroubles } from "../../src/explain/past/recent-troubles.ts";
import { isSuspect } from "../../src/explain/past/suspect.ts";
import { minute } from "../../src/explain/past-times.ts";
import { past, START_S, step, steps } from "../harness/past.ts";

const SLOW = { took: 2 };
const slow = steps(90, 65, 71, SLOW);
const at = (minutes: number) => START_S + minutes * 60;
const recentPast = (name: string, all: PastStepFacts[]) => recentTroubles(name, all)[0]?.finding;
const change = (kind: PastChange["kind"], minutes: number, more: Partial<PastChange> = {}): PastChange => ({
  ...{ atS: at(minutes), kind, times: 1, detail: "b".repeat(24), former: "a".repeat(24), by: null },
  ...more,
});
const ended = { times: 2, detail: "ran out of memory", former: null };
const job = { apiName: "big", jobId: "j1", workers: 4, round: 1, startedS: at(64), endedS: at(72) };

describe("what differed", () => {
  const SITUATIONS: [cause: string, severity: string, facts: PastFacts, says: RegExp][] = [
    [
      "latency_rose",
      "warning",
      past(slow),
      /slow from 2026-11-28T13:05Z to 2026-11-28T13:12Z: 95 % took up to 2.4 s instead of 24 ms[\s\S]*predict\(\) itself took longer/,
    ],
    [
      "latency_rose",
      "warning",
      past(steps(90, 65, 71, { took: 2, waited: 2, queueDepth: 40 })),
      /most of it is the wait for a free replica: up to 40 requests waited at once, at most 0 before/,
    ],
    [
      "wait_rose",
      "warning",
      past(steps(90, 65, 66, { took: 0.04, waited: 0.04 })),
      /waited long for a replica from .*: 95 % took up to 49 ms instead of 1 ms/,
    ],
    [
      "errors_rose",
      "error",
      past(steps(90, 65, 71, { errors: 45 }), { exceptions: [{ text: "KeyError: 'x'", count: 9 }] }),
      /75 % of requests failed from .*, 0 % before[\s\S]*315 of 420[\s\S]*315 of them failed in predict\(\)[\s\S]*9 times: KeyError/,
    ],
    [
      "errors_rose",
      "warning",
      past(steps(90, 65, 71, { errors: 6, rejected: { queue_full: 6 } })),
      /10 % of requests failed[\s\S]*42 times queue_full \(503\), without a prediction/,
    ],
    [
      "rejections_rose",
      "warning",
      past(steps(90, 65, 71, { rejected: { rate_limited: 30 } })),
      /50 % of requests were refused[\s\S]*210 times rate_limited \(429\)/,
    ],
  ];

  it.each(SITUATIONS)("is %s (%s)", (cause, severity, facts, says) => {
    const { findings, past: when } = explainPast(facts);
    const finding = findings.find((one) => one.cause === cause)!;
    expect([finding?.severity, [finding?.title, ...(finding?.evidence ?? [])].join("\n")]).toEqual([
      severity,
      expect.stringMatching(says),
    ]);
    expect(when!.from).toBe("2026-11-28T13:05:00.000Z");
  });

  it("is found from its middle, its end, and minutes beside it, as the same time", () => {
    const span = (minutes: number) => explainPast(past(slow, { atS: at(minutes) })).past;
    for (const minutes of [56, 65, 68, 71, 80])
      expect(span(minutes), String(minutes)).toMatchObject({
        from: "2026-11-28T13:05:00.000Z",
        to: "2026-11-28T13:12:00.000Z",
      });
    expect(span(50)).toMatchObject({ from: null, to: null });
  });

  it("is the trouble of that time, and not another one of minutes before", () => {
    const failing = slow.map((one, i) => (i >= 55 && i <= 58 ? step(i, { errors: 12 }) : one));
    const { findings, past: when } = explainPast(
      past(failing, { atS: at(65), changes: [change("deployed", 64)] }),
    );
    expect(findings.map(({ cause }) => cause)).toEqual(["latency_rose", "version_changed"]);
    expect(when!.from).toBe("2026-11-28T13:05:00.000Z");
  });

  it("is first what is wrong at that minute, then what is wrong beside it", () => {
    const failingLater = slow.map((one, i) => (i >= 70 && i <= 71 ? step(i, { ...SLOW, errors: 12 }) : one));
    const causes = (minutes: number) =>
      explainPast(past(failingLater, { atS: at(minutes) })).findings.map(({ cause }) => cause);
    expect(causes(66).slice(0, 2)).toEqual(["latency_rose", "errors_rose"]);
    expect(causes(70).slice(0, 2)).toEqual(["errors_rose", "latency_rose"]);
  });

  it("has gaps of two quiet minutes, and ends now if it still goes on", () => {
    const all = slow.map((one, i) => (i === 67 || i === 68 ? step(i) : one));
    expect(explainPast(past(all)).past!.to).toBe("2026-11-28T13:12:00.000Z");
    const nowS = at(71) + 20;
    expect(explainPast(past(slow.slice(0, 72), { nowS })).past!.to).toBe("2026-11-28T13:11:20.000Z");
  });

  it("is nothing in an API whose times vary as they always do", () => {
    const varied = Array.from({ length: 90 }, (_, i) => step(i, { took: [0.02, 0.04, 0.09][i % 3]! }));
    const { findings } = explainPast(past(varied));
    expect(findings).toMatchObject([{ cause: "nothing_differed" }]);
    expect(findings[0]!.evidence.join()).toMatch(/1,260 requests, p95 \d+ ms, 0 % with a 5xx/);
  });

  it("is not said of the first minutes, which have nothing to be compared with", () => {
    const { findings } = explainPast(past(slow.slice(64)));
    expect(findings[0]).toMatchObject({
      cause: "nothing_differed",
      title: expect.stringMatching(/too little/),
    });
  });

  it("is unknown when there was no request", () => {
    const { findings } = explainPast(past(steps(90, 0, 89, { requests: 0 })));
    expect(findings).toMatchObject([{ cause: "nothing_known", command: "quern series x --since 24h" }]);
  });

  it("is found by the hour when minutes are no longer kept", () => {
    const hours = steps(70, 60, 61, { took: 2 }, 3600);
    const facts = past(hours, { stepS: 3600, atS: START_S + 60 * 3600, nowS: START_S + 90 * 3600 });
    expect(explainPast(facts).findings[0]!.title).toMatch(/slow from 2026-12-01T00:00Z to 2026-12-01T02:00Z/);
  });
});

describe("what changed just before", () => {
  const more = steps(90, 65, 71, { took: 2, requests: 300 });
  const fewer = steps(90, 65, 71, { took: 2, replicas: 1 });
  const away = slow.map((one, i) => (i >= 62 && i < 65 ? { ...one, requests: 0, replicas: null } : one));
  const SITUATIONS: [cause: string, facts: PastFacts, says: RegExp, command: string | null][] = [
    [
      "version_changed",
      past(slow, { changes: [change("deployed", 64)] }),
      /A new version was deployed at 2026-11-28T13:04Z, 1 minute before[\s\S]*version b{12}… replaced a{12}…/,
      `quern rollback x ${"a".repeat(24)}`,
    ],
    [
      "version_changed",
      past(slow, { changes: [change("rolled_back", 65)] }),
      /rolled back to another version at 2026-11-28T13:05Z, just before/,
      `quern rollback x ${"a".repeat(24)}`,
    ],
    [
      "replicas_lost",
      past(fewer, { changes: [change("replica_ended", 65, ended)] }),
      /2 replicas ended unexpectedly[\s\S]*at 2026-11-28T13:05Z one ran out of memory[\s\S]*from 2 to 1/,
      "quern logs x",
    ],
    [
      "replicas_fell",
      past(fewer),
      /Fewer replicas served: 1 instead of 2/,
      expect.stringMatching("series x"),
    ],
    ["server_restarted", past(away), /stopped just before, until 2026-11-28T13:05Z/, null],
    [
      "requests_rose",
      past(more),
      /5 times as many[\s\S]*300 requests a minute, instead of 60/,
      "quern patch quern.yaml",
    ],
    [
      "jobs_began",
      past(steps(90, 65, 71, { took: 2, cpus: 6 }), { jobs: [job] }),
      /1 job began just before[\s\S]*big j1 with 4 workers began at 2026-11-28T13:04Z and ended at[\s\S]*CPUs of the server: 6 instead of 2/,
      "quern explain big j1",
    ],
    ["nothing_changed", past(slow), /Nothing that the server knows of/, "quern logs x"],
  ];

  it.each(SITUATIONS)("is %s", (cause, facts, says, command) => {
    const { findings, summary } = explainPast(facts);
    const finding = findings.find((one) => one.cause === cause)!;
    expect([finding?.title, ...(finding?.evidence ?? [])].join("\n")).toMatch(says);
    expect(finding.command).toEqual(command);
    expect(findings[0]!.cause).toBe("latency_rose");
    expect(summary).toMatch(/^Requests were slow .*; [a-z0-9]/);
  });

  it("is a recent version before replicas that ended, and these before an older one", () => {
    const causes = (deployed: number) =>
      explainPast(
        past(slow, { changes: [change("deployed", deployed), change("replica_ended", 65, ended)] }),
      ).findings.map(({ cause }) => cause);
    expect(causes(63)).toEqual(["latency_rose", "version_changed", "replicas_lost"]);
    expect(causes(54)).toEqual(["latency_rose", "replicas_lost", "version_changed"]);
  });

  it("is not that the API is young, or that a few more requests came", () => {
    const young = slow.map((one, i) => (i < 60 ? { ...one, replicas: null } : one));
    expect(explainPast(past(young)).findings[1]!.cause).toBe("nothing_changed");
    const few = steps(90, 0, 89, { requests: 3 }).map((one, i) =>
      i >= 65 && i <= 71 ? step(i, { ...SLOW, requests: 9 }) : one,
    );
    expect(explainPast(past(few)).findings[1]!.cause).toBe("nothing_changed");
  });

  it("is no round of a job that had ended; and reserved CPUs are named only if they became others", () => {
    const beside = (cpus: number, more: object) =>
      explainPast(past(steps(90, 65, 71, { took: 2, cpus }), { jobs: [{ ...job, ...more }] })).findings;
    const ended = beside(6, { endedS: at(64) + 11 }).map(({ cause }) => cause);
    expect(ended).toEqual(["latency_rose", "nothing_changed"]);
    expect(beside(6, { round: 2 })[1]!.evidence).toEqual([
      expect.stringMatching(/^round 2 of big j1 with 4 workers began at /),
      "reserved CPUs of the server: 6 instead of 2",
    ]);
    expect(beside(2.05, {})[1]!.evidence).toHaveLength(2);
    expect(beside(2, {})[1]).toMatchObject({ cause: "jobs_began", evidence: [expect.any(String)] });
  });

  it("is not what happened an hour before, or later", () => {
    const first = change("deployed", 64, { former: null });
    const changes = [
      change("deployed", 4),
      first,
      change("deployed", 70),
      change("replica_ended", 30, ended),
    ];
    const jobs = [
      { ...job, startedS: at(60), endedS: at(62) },
      { ...job, startedS: at(10) },
      { ...job, startedS: at(70) },
    ];
    const causes = explainPast(past(slow, { changes, jobs })).findings.map((finding) => finding.cause);
    expect(causes).toEqual(["latency_rose", "nothing_changed"]);
  });
});

describe("the last day", () => {
  it("names the newest time that is over, with the command that explains it", () => {
    const twice = slow.map((one, i) => (i >= 30 && i < 35 ? step(i, SLOW) : one));
    const finding = recentPast("x", twice)!;
    expect(finding).toMatchObject({
      cause: "was_slow",
      severity: "info",
      title: "Requests were slow from 2026-11-28T13:05Z to 2026-11-28T13:12Z; it is over",
      command: "quern explain x --at 2026-11-28T13:05Z",
    });
    expect(finding.evidence).toEqual([
      expect.stringMatching(/^then: 420 requests, p95 2.4 s/),
      expect.stringMatching(/^before: 3,?600 requests, p95 [\d.]+ m?s/),
      "1 other time in the last day",
    ]);
    expect(recentPast("x", steps(90, 65, 71, { errors: 40 }))!.title).toMatch(/^Requests failed from/);
  });

  it("names the time since which requests are slow or fail, however long that is", () => {
    for (const length of [72, 90, 900]) {
      const still = steps(length, 65, length - 1, SLOW);
      expect(recentPast("x", still)).toMatchObject({
        cause: "became_slow",
        severity: "warning",
        title: "Requests have been slow since 2026-11-28T13:05Z",
        evidence: [
          expect.stringMatching(/^since then: \d[\d,]* requests, p95 2.4 s/),
          expect.stringMatching(/^before/),
        ],
        command: "quern explain x --at 2026-11-28T13:05Z",
      });
    }
    const failing = recentPast("x", steps(90, 65, 89, { errors: 40 }))!;
    expect(failing.title).toBe("Requests have been failing since 2026-11-28T13:05Z");
  });

  it("does not reopen a time that is over for the first requests of a minute, nor for slow ones", () => {
    // From 13:05 to 13:12 requests failed. The first requests of 13:14 are slow.
    const failed = steps(90, 65, 71, { errors: 40 });
    for (const took of [0.02, 2]) {
      const open = failed.slice(0, 73);
      expect(recentPast("x", open)!.title).toBe("Requests have been failing since 2026-11-28T13:05Z");
      for (const length of [74, 75, 76]) {
        const now = [...failed.slice(0, length - 1), step(length - 1, { took, requests: 3 })];
        expect(recentPast("x", now)!.title, `${length}`).toMatch(/^Requests failed from .*; it is over$/);
      }
    }
    const slowAfter = failed.map((one, at) => (at >= 73 && at <= 80 ? step(at, { took: 2 }) : one));
    for (const length of [76, 77, 78, 79])
      for (const { kind, isOpen } of recentTroubles("x", slowAfter.slice(0, length)))
        expect([kind, isOpen], `${length}`).toEqual(length < 79 ? ["failing", false] : ["slow", true]);
  });

  it("names both what fails and what is slow", () => {
    const both = recentTroubles("x", steps(90, 65, 89, { errors: 40, took: 2 }));
    expect(both.map(({ kind, isOpen }) => [kind, isOpen])).toEqual([
      ["failing", true],
      ["slow", true],
    ]);
  });

  it("gives the share of failed requests of the whole minutes of the trouble", () => {
    const edges = steps(90, 65, 71, { errors: 30 }).map((one, at) =>
      at === 65 || at === 71 ? { ...one, errors: 5 } : one,
    );
    expect(recentPast("x", edges)!.evidence[0]).toMatch(/^then: 420 requests, .*, 50 % with a 5xx status$/);
  });

  it("names none if it has just begun, has few requests, or nothing was slow", () => {
    expect(recentPast("x", slow.slice(0, 68))).toBeUndefined();
    expect(recentPast("x", steps(90, 65, 70, { took: 0.04 }))).toBeUndefined();
    expect(recentPast("x", steps(90, 65, 71, { took: 2, requests: 0 }))).toBeUndefined();
    expect(recentPast("x", steps(90, 65, 65, { took: 2, requests: 2 }))).toBeUndefined();
    expect(recentPast("x", steps(90, 0, 89, {}))).toBeUndefined();
    expect(recentPast("x", [])).toBeUndefined();
  });
});

describe("a suspect", () => {
  const suspect = (took: readonly number[]) => isSuspect(took.map((one) => step(0, { took: one }).durations));
  const minutes = (count: number, took: number) => new Array<number>(count).fill(took);

  it("is what takes long, or clearly longer than in some minutes before", () => {
    expect(suspect([])).toBe(false);
    expect(suspect(minutes(30, 0.02))).toBe(false);
    expect(suspect(minutes(3, 2))).toBe(true);
    expect(suspect([...minutes(25, 0.02), ...minutes(5, 0.2)])).toBe(true);
    expect(suspect([...minutes(5, 0.02), ...minutes(25, 0.2)])).toBe(true);
    expect(suspect([...minutes(25, 0.2), ...minutes(5, 0.02)])).toBe(false);
  });

  it("is whatever has become slow within half an hour", () => {
    for (const length of [8, 12, 20]) {
      const still = steps(90, 90 - length, 89, { took: 0.09 });
      expect(recentPast("x", still)!.cause).toBe("became_slow");
      expect(isSuspect(still.slice(-30).map(({ durations }) => durations))).toBe(true);
    }
  });
});

describe("runs of steps", () => {
  it("have every step that differs in one of them, and begin and end with such a step", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (differs) => {
        const runs = runsOf(differs);
        const isIn = (i: number) => runs.some(({ first, last }) => first <= i && i <= last);
        for (const [i, isOne] of differs.entries()) if (isOne) expect(isIn(i)).toBe(true);
        for (const { first, last } of runs) expect([differs[first], differs[last]]).toEqual([true, true]);
        for (const [i, { first }] of runs.entries())
          if (i > 0) expect(first - runs[i - 1]!.last).toBeGreaterThan(3);
      }),
    );
  });

  it("are found from so far away, the nearest first", () => {
    const runs = [
      { first: 2, last: 4 },
      { first: 9, last: 9 },
    ];
    expect([0, 3, 6, 7, 20].map((from) => nearest(runs, from, 2)?.first)).toEqual([2, 2, 2, 9, undefined]);
  });
});

it("writes times of UTC to the minute", () => {
  expect(minute(START_S + 119)).toBe("2026-11-28T12:01Z");
});
