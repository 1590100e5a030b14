/** The requests of the last minutes, from the totals that gateways report. */
import { describe, expect, it } from "vitest";
import { percentile } from "../../../src/apis/traffic/counts.ts";
import { RecentTraffic } from "../../../src/apis/traffic/recent-traffic.ts";
import { DURATION_BOUNDS_S, emptyTally, type Tally } from "../../../src/contracts/reports.ts";

/** Totals of `good` responses within 10 ms, and `bad` ones within a second. */
function totals(good: number, bad = 0): Tally {
  const tally = emptyTally();
  tally.answers = { "2xx": good, "5xx": bad };
  tally.duration.buckets[DURATION_BOUNDS_S.indexOf(0.01)] = good;
  tally.duration.buckets[DURATION_BOUNDS_S.indexOf(1)] = bad;
  return tally;
}

const report = (gateway: string, tally: Tally, in_flight = 0, waiting = 0) => ({
  gateway,
  apis: [{ name: "iris", in_flight, waiting, tally }],
});
const START = 600_000;
const iris = (traffic: RecentTraffic, nowMs: number) => traffic.read(nowMs).byApi.get("iris");

describe("recent traffic", () => {
  it("counts what totals have grown by, of all gateways together", () => {
    const traffic = new RecentTraffic(START - 600_000);
    traffic.take(report("a", totals(10)), START);
    traffic.take(report("a", totals(40, 2)), START + 1_000);
    traffic.take(report("b", totals(18)), START + 1_000);
    traffic.take(report("b", totals(18)), START + 2_000);
    const seen = iris(traffic, START + 4_999)!;
    expect(seen.recent).toEqual([...new Array<number>(29).fill(0), 60]);
    // 55 s of complete slots, and 5 s of the current one.
    expect([seen.requests_per_s, seen.errors_per_s]).toEqual([1, 0.0333]);
    expect(seen.latency_p50_s).toBeGreaterThan(0.005);
    expect(seen.latency_p50_s).toBeLessThan(0.01);
    expect(seen.latency_p99_s).toBeGreaterThan(0.5);
  });

  it("does not count again what a former controller was told", () => {
    const traffic = new RecentTraffic(START);
    traffic.knowBefore(new Map([["a", [["iris", totals(1_000)]]]]), START);
    traffic.take(report("a", totals(1_003)), START + 1_000);
    traffic.take(report("new", totals(4)), START + 1_000);
    expect(iris(traffic, START + 2_000)!.recent.at(-1)).toBe(7);
  });

  it("begins with the minutes that are stored", () => {
    const traffic = new RecentTraffic(START);
    const stored = (requests: number, agoMs: number) => ({
      ...{ api: "iris", requests, errors: 0, agoMs },
      buckets: totals(requests).duration.buckets,
    });
    traffic.knowBefore(new Map([["a", [["iris", totals(1_000)]]]]), START + 30_000);
    traffic.restore([stored(40, 120_000), stored(7, 10_000)], START + 30_000);
    traffic.take(report("a", totals(1_003)), START + 31_000);
    const seen = iris(traffic, START + 32_000)!;
    expect(seen.recent.slice(-4)).toEqual([0, 40, 0, 10]);
    // Nobody knows in which seconds of their minutes those before came.
    expect(seen.requests_per_s).toBe(0.0938);
    expect(traffic.durations(START + 32_000).get("iris")).toHaveLength(2);
  });

  it("knows when a request failed last, and how many have succeeded since", () => {
    const traffic = new RecentTraffic(START);
    traffic.take(report("a", totals(10)), START);
    expect(traffic.lastErrors("iris")).toBeUndefined();
    traffic.take(report("a", totals(12, 1)), START + 1_000);
    traffic.take(report("a", totals(19, 1)), START + 2_000);
    traffic.take(report("b", totals(4)), START + 3_000);
    expect(traffic.lastErrors("iris")).toEqual({ atMs: START + 1_000, requestsSince: 11 });
    traffic.take(report("b", totals(4, 1)), START + 4_000);
    expect(traffic.lastErrors("iris")).toEqual({ atMs: START + 4_000, requestsSince: 0 });
  });

  it("counts no refusal of the gateway as a failure of predict(), nor as a request without one", () => {
    const traffic = new RecentTraffic(START);
    const refused = (good: number, bad: number, queue_full: number) => ({
      ...totals(good, bad),
      rejected: { queue_full, rate_limited: 7 },
    });
    traffic.take(report("a", refused(10, 1, 0)), START);
    traffic.take(report("a", refused(20, 21, 20)), START + 1_000);
    expect(traffic.lastErrors("iris")).toEqual({ atMs: START + 1_000, requestsSince: 0 });
    expect(traffic.lastFailures("iris")).toEqual({ atMs: START, requestsSince: 10 });
    // Two responses of refusals end after the report, one of the next as well.
    traffic.take(report("a", refused(25, 24, 25)), START + 2_000);
    traffic.take(report("a", refused(30, 30, 30)), START + 3_000);
    traffic.take(report("a", refused(30, 31, 30)), START + 4_000);
    expect(traffic.lastFailures("iris")).toEqual({ atMs: START, requestsSince: 20 });
    traffic.take(report("a", refused(30, 32, 30)), START + 5_000);
    expect(traffic.lastFailures("iris")).toEqual({ atMs: START + 5_000, requestsSince: 0 });
  });

  it("takes errors for failures of predict() although clients left before they were refused", () => {
    const traffic = new RecentTraffic(START);
    const refused = (good: number, bad: number) => ({ ...totals(good, bad), rejected: { queue_full: 9 } });
    for (const second of [0, 1, 2])
      traffic.take(report("a", refused(10 + second, 0)), START + second * 1_000);
    traffic.take(report("a", refused(12, 1)), START + 3_000);
    expect(traffic.lastFailures("iris")).toEqual({ atMs: START + 3_000, requestsSince: 0 });
  });

  it("counts anew once another version serves alone, without what old replicas still answered", () => {
    const traffic = new RecentTraffic(START);
    let serving: string | undefined = "v1";
    traffic.servedAlone = () => serving;
    const take = (good: number, bad: number, second: number, gateway = "a") =>
      traffic.take(report(gateway, totals(good, bad)), START + second * 1_000);
    take(10, 0, 0);
    take(10, 5, 1);
    expect(traffic.sinceSwitch("iris")).toBeUndefined();
    // The old replicas drain.
    serving = undefined;
    take(15, 10, 2);
    serving = "v2";
    take(15, 15, 3);
    take(0, 1, 4, "b");
    // Of which version were these failures?
    expect(traffic.sinceSwitch("iris")).toBeUndefined();
    const since = { atMs: START + 3_000, unclear: 6 };
    take(25, 15, 5);
    take(30, 17, 6);
    expect(traffic.sinceSwitch("iris")).toEqual({ ...since, requests: 17, failed: 2 });
    serving = "v1";
    take(31, 17, 7);
    expect(traffic.sinceSwitch("iris")).toEqual({ atMs: START + 7_000, unclear: 0, requests: 0, failed: 0 });
  });

  it("counts an API that was deleted and deployed again from its start", () => {
    const traffic = new RecentTraffic(START);
    traffic.take(report("a", totals(100)), START);
    traffic.take(report("a", totals(3)), START + 1_000);
    expect(iris(traffic, START + 2_000)!.recent.at(-1)).toBe(103);
  });

  it("forgets rates after a minute, minutes after half an hour, and what a silent gateway had in flight", () => {
    const traffic = new RecentTraffic(START - 600_000);
    traffic.take(report("a", totals(60), 5, 2), START);
    expect(iris(traffic, START + 9_000)).toMatchObject({ in_flight: 5, queue_depth: 2 });
    expect(iris(traffic, START + 61_000)).toMatchObject({
      ...{ requests_per_s: 0, in_flight: 0, queue_depth: 0, latency_p50_s: null, latency_p99_s: null },
    });
    expect(iris(traffic, START + 29 * 60_000)!.recent[0]).toBe(60);
    expect(iris(traffic, START + 30 * 60_000)!.recent).toEqual(new Array<number>(30).fill(0));
    traffic.take({ gateway: "a", apis: [] }, START + 40 * 60_000);
    expect(traffic.read(START + 40 * 60_000).byApi.size).toBe(0);
  });

  it("shows rates of a controller's first seconds as what they are", () => {
    const traffic = new RecentTraffic(START);
    traffic.take(report("a", totals(20)), START + 1_000);
    expect(iris(traffic, START + 10_000)!.requests_per_s).toBe(2);
  });
});

describe("a percentile", () => {
  it.each([
    [[], 0.5, null],
    [[0, 4], 0.5, 0.00175],
    [[2, 2], 0.5, 0.001],
    [[...new Array<number>(15).fill(0), 3], 0.99, 60],
    [[0, 100, 0, 1], 0.99, 0.0025],
  ])("of %j at %f is %f", (buckets, share, wanted) => {
    const known = percentile(buckets, share);
    if (wanted === null) expect(known).toBeNull();
    else expect(known).toBeCloseTo(wanted, 4);
  });
});
