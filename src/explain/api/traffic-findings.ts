/** Why requests are slow or fail: their wait for a replica, predict() itself, its exceptions. Pure. */
import { percentileOf } from "../../contracts/reports.ts";
import { countOf, meanOf, SLOW_S } from "../durations.ts";
import { type Finding, found } from "../finding.ts";
import { count, duration, percent } from "../words.ts";
import type { ApiFacts, RolloutFacts, TrafficFacts } from "./api-facts.ts";
import { errorFindings } from "./error-findings.ts";
import { areFew, judgeFailures } from "./judge-failures.ts";

/** Fewer requests say nothing about what dominates. */
const REQUESTS_LEAST = 5;
/** From this share of the duration on, the wait dominates. */
const WAIT_SHARE = 0.5;
/** A shorter wait disturbs nobody. */
const WAIT_LEAST_S = 0.02;
/** Requests that were refused have no wait: if they are more, the durations say little about predict(). */
const WAITS_SHARE = 0.9;

/** Why requests are slow now: they wait, or predict() takes long. */
export function slownessFindings({ name, rollout, traffic }: SlownessFacts): Finding[] {
  if (traffic === undefined) return [];
  const isQueueing = rollout !== undefined && rollout.wanted > 0 && queues(traffic, rollout);
  const asleep = rollout?.upToDate === 0;
  return isQueueing && !asleep ? queueFindings(name, traffic, rollout) : slowFindings(name, traffic);
}

export type SlownessFacts = Pick<ApiFacts, "name" | "rollout" | "traffic">;

export function trafficFindings(facts: ApiFacts): Finding[] {
  const { rollout, traffic } = facts;
  if (traffic === undefined) return [];
  return [
    ...slownessFindings(facts),
    ...(rollout === undefined ? [] : maxFindings(traffic, rollout)),
    ...(areFew(judgeFailures(traffic)) ? [] : errorFindings(facts)),
  ];
}

/** Errors of a few requests: they are told after everything else. */
export function fewErrorsFindings(facts: ApiFacts): Finding[] {
  const { traffic } = facts;
  return traffic !== undefined && areFew(judgeFailures(traffic)) ? errorFindings(facts) : [];
}

function queues({ tally, waiting }: TrafficFacts, { upToDate, parallel }: RolloutFacts): boolean {
  const wait = meanOf(tally.wait);
  const isSlow = wait >= WAIT_LEAST_S && wait >= WAIT_SHARE * meanOf(tally.duration);
  const isNow = waiting >= Math.max(REQUESTS_LEAST, upToDate * parallel);
  return isNow || (isSlow && countOf(tally.wait) >= REQUESTS_LEAST);
}

/** What takes more of the time comes first: more replicas do not make a slow predict() faster. */
function queueFindings(name: string, traffic: TrafficFacts, rollout: RolloutFacts): Finding[] {
  const { tally } = traffic;
  const wait = meanOf(tally.wait);
  const own = ownS(traffic);
  const queue = queueFinding(traffic, rollout);
  if (own < SLOW_S) return [queue];
  const title = `predict() itself is slow: ${duration(own)} on average, without the wait`;
  const slow = predictSlow(name, traffic, title);
  return own >= wait ? [slow, queue] : [queue, slow];
}

/** How long a request takes on average once it has its replica; 0 if too few got one. */
function ownS({ tally }: TrafficFacts): number {
  const [waits, all] = [countOf(tally.wait), countOf(tally.duration)];
  if (waits < REQUESTS_LEAST || waits < WAITS_SHARE * all) return 0;
  return Math.max(0, meanOf(tally.duration) - meanOf(tally.wait));
}

/** `p50 12 ms, p95 1.2 s` */
function percentiles(histogram: TrafficFacts["tally"]["wait"]): string {
  const [p50, p95] = [0.5, 0.95].map((share) => percentileOf(histogram.buckets, share) ?? 0);
  return `p50 ${duration(p50!)}, p95 ${duration(p95!)}`;
}

function queueFinding({ tally, waiting, seconds, inFlight }: TrafficFacts, rollout: RolloutFacts): Finding {
  const { upToDate, parallel, wanted, max } = rollout;
  const [wait, whole] = [meanOf(tally.wait), meanOf(tally.duration)];
  const share = whole === 0 ? "" : `: ${percent(Math.min(wait, whole), whole)} of their time`;
  const grows = wanted < max ? "autoscaling.min_replicas" : `autoscaling.max_replicas (now ${max})`;
  const mostly = wait >= WAIT_SHARE * whole ? "mostly " : "";
  return found("queue_wait_dominates", "warning", `Requests ${mostly}wait for a free replica${share}`, {
    evidence: [
      `wait for a replica: ${percentiles(tally.wait)}`,
      `whole request: ${percentiles(tally.duration)}, over the last ${duration(seconds)}`,
      `${inFlight} requests in flight, ${waiting} of them wait now`,
      `${count(upToDate, "replica")}; each runs ${count(parallel, "request")} at once`,
    ],
    cure: `raise ${grows} or processes_per_replica if predict() computes; raise threads_per_process if it mostly waits for others`,
    command: "quern patch quern.yaml",
  });
}

function slowFindings(name: string, traffic: TrafficFacts): Finding[] {
  const { duration: whole } = traffic.tally;
  const p95 = percentileOf(whole.buckets, 0.95) ?? 0;
  if (p95 < SLOW_S || countOf(whole) < REQUESTS_LEAST) return [];
  const title = `predict() itself is slow: 95 % of requests take up to ${duration(p95)}`;
  return [predictSlow(name, traffic, title)];
}

function predictSlow(name: string, { tally, seconds, timeoutS }: TrafficFacts, title: string): Finding {
  const p95 = percentileOf(tally.duration.buckets, 0.95) ?? 0;
  return found("predict_slow", "warning", title, {
    evidence: [
      `whole request: ${percentiles(tally.duration)}, over the last ${duration(seconds)}`,
      `wait for a replica: ${percentiles(tally.wait)}`,
      p95 >= timeoutS / 2 ? `predictor.timeout is ${duration(timeoutS)}` : undefined,
    ],
    cure: "more replicas do not make one prediction faster: measure predict(), give it more CPU (compute.cpu) or a GPU, or load a smaller model",
    command: `quern logs ${name}`,
  });
}

function maxFindings({ inFlight }: TrafficFacts, { wanted, max, target }: RolloutFacts): Finding[] {
  if (wanted < max || inFlight <= wanted * target) return [];
  return [
    found(
      "at_max_replicas",
      "warning",
      `The load needs more than the ${count(max, "replica")} that max_replicas permits`,
      {
        evidence: [
          `${inFlight} requests in flight; the autoscaler aims at ${target} per replica`,
          `it would want ${Math.ceil(inFlight / target)} replicas`,
        ],
        cure: `raise autoscaling.max_replicas above ${max}`,
        command: "quern patch quern.yaml",
      },
    ),
  ];
}
