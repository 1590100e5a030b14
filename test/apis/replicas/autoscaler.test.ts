import { describe, expect, it } from "vitest";
import {
  decideReplicas,
  type Recommendation,
  type ScalingHistory,
  type ScalingRules,
} from "../../../src/apis/replicas/autoscaler.ts";

const RULES: ScalingRules = {
  min: 1,
  max: 20,
  target: 2,
  windowMs: 60_000,
  downscaleAfterMs: 300_000,
  upscaleAfterMs: 60_000,
  maxDownscale: 0.75,
  maxUpscale: 1.5,
  downscaleTolerance: 0.05,
  upscaleTolerance: 0.05,
};

/** The decisions every ten seconds for a load that changes with time; the API starts at 0. */
function trace(
  load: (second: number) => number,
  seconds: number,
  given: Partial<ScalingRules> = {},
  first = 1,
) {
  const rules = { ...RULES, ...given };
  const samples: { atMs: number; inFlight: number }[] = [];
  const recommendations: Recommendation[] = [];
  const counts: number[] = [];
  let current = first;
  for (let second = 1; second <= seconds; second++) {
    samples.push({ atMs: second * 1000, inFlight: load(second) });
    if (second % 10 !== 0) continue;
    const nowMs = second * 1000;
    const decision = decideReplicas(rules, current, { startedMs: 0, samples, recommendations }, nowMs);
    recommendations.push({ atMs: nowMs, replicas: decision.recommended });
    current = decision.replicas;
    counts.push(current);
  }
  return counts;
}

const last = (counts: number[]) => counts.at(-1);

describe("the autoscaler", () => {
  it.each<[string, () => unknown, unknown]>([
    ["keeps its replicas if the load is at the target", () => trace(() => 6, 600, {}, 3), Array(60).fill(3)],
    ["does not scale up before the upscale period has passed", () => trace(() => 20, 50), [1, 1, 1, 1, 1]],
    ["scales up to the number that the load needs", () => last(trace(() => 20, 400)), 10],
    ["never scales above the maximum", () => last(trace(() => 1000, 600)), 20],
    ["never scales below the minimum", () => last(trace(() => 0, 3000, { min: 3 }, 10)), 3],
    [
      "ignores a lull that is shorter than the downscale period",
      () => Math.min(...trace((s) => (s % 240 < 60 ? 20 : 2), 1800, {}, 10).slice(30)),
      10,
    ],
    [
      "ignores a peak that is shorter than the upscale period",
      () => Math.max(...trace((s) => (s % 300 < 20 ? 40 : 2), 1500, { windowMs: 10_000 })),
      1,
    ],
    [
      "scales down by at most its factor in one step",
      () => trace(() => 0, 40, { downscaleAfterMs: 0 }, 16),
      [12, 9, 7, 6],
    ],
    [
      "scales up by at most its factor in one step",
      () => trace(() => 1000, 50, { upscaleAfterMs: 0 }, 4),
      [6, 9, 14, 20, 20],
    ],
    [
      "scales by one if the factor would change nothing",
      () => trace(() => 0, 30, { downscaleAfterMs: 0 }, 3),
      [2, 1, 1],
    ],
    ["scales to zero if that is the minimum", () => last(trace(() => 0, 400, { min: 0 })), 0],
    ["scales up from zero at once", () => trace(() => 1, 10, { min: 0 }, 0), [1]],
    ["tolerates a load slightly off the target", () => trace(() => 20.6, 600, {}, 10), Array(60).fill(10)],
    ["does not tolerate a larger deviation", () => last(trace(() => 21.5, 600, {}, 10)), 11],
  ])("%s", (_, decided, expected) => {
    expect(decided()).toEqual(expected);
  });

  const NOW = 1_000_000;
  const load = (inFlight: number, agoMs = 0) => ({ atMs: NOW - agoMs, inFlight });
  /** Tolerances that floating point holds exactly. */
  const WIDE = { downscaleTolerance: 0.5, upscaleTolerance: 0.5, upscaleAfterMs: 0, downscaleAfterMs: 0 };

  it.each<[string, Partial<ScalingRules>, number, Partial<ScalingHistory>, number]>([
    ["tolerates a load at its lower edge", WIDE, 4, { samples: [load(4)] }, 4],
    ["does not tolerate one below it", WIDE, 4, { samples: [load(3.9)] }, 3],
    ["tolerates a load at its upper edge", WIDE, 4, { samples: [load(12)] }, 4],
    ["does not tolerate one above it", WIDE, 4, { samples: [load(12.1)] }, 6],
    [
      "averages over the window only",
      { ...WIDE, windowMs: 1000 },
      4,
      { samples: [load(100, 1000), load(100, 1001), load(6, 999), load(10)] },
      4,
    ],
    ["does not treat missing samples as zero load", WIDE, 4, { samples: [] }, 3],
    [
      "scales down once the downscale period has passed since its start",
      {},
      4,
      { startedMs: NOW - RULES.downscaleAfterMs },
      3,
    ],
    ["does not scale down before that", {}, 4, { startedMs: NOW - RULES.downscaleAfterMs + 1 }, 4],
    [
      "scales up once the upscale period has passed since its start",
      {},
      4,
      { startedMs: NOW - RULES.upscaleAfterMs, samples: [load(100)] },
      6,
    ],
    [
      "does not scale up before that",
      {},
      4,
      { startedMs: NOW - RULES.upscaleAfterMs + 1, samples: [load(100)] },
      4,
    ],
    [
      "scales down no further than the recommendations of the period allow",
      { maxDownscale: 0 },
      9,
      { recommendations: [{ atMs: NOW - RULES.downscaleAfterMs + 1, replicas: 5 }] },
      5,
    ],
    [
      "forgets recommendations from before the period",
      { maxDownscale: 0 },
      9,
      { recommendations: [{ atMs: NOW - RULES.downscaleAfterMs, replicas: 5 }] },
      1,
    ],
  ])("%s", (_, given, current, history, expected) => {
    const whole = { startedMs: 0, samples: [], recommendations: [], ...history };
    expect(decideReplicas({ ...RULES, ...given }, current, whole, NOW).replicas).toBe(expected);
  });

  const AVERAGE = "requests in flight on average over 60 s, 2 per replica wanted";

  it.each<[string, number, number[], string]>([
    [
      "holds its replicas",
      1,
      [20],
      `20.0 ${AVERAGE}: 2 recommended, kept at 1 during the stabilization period`,
    ],
    ["follows the load", 2, [4], `4.0 ${AVERAGE}`],
    ["has no load", 0, [0], `0.0 ${AVERAGE}`],
    ["has no sample", 0, [], `0.0 ${AVERAGE}`],
    ["wakes", 0, [1], `woken: 1.0 ${AVERAGE}`],
  ])("says why it %s", (_, current, loads, reason) => {
    const samples = loads.map((inFlight) => load(inFlight));
    const history = { startedMs: NOW, samples, recommendations: [] };
    expect(decideReplicas({ ...RULES, min: 0 }, current, history, NOW).reason).toBe(reason);
  });
});
