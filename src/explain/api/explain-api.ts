/** Why is this API slow, failing, or not as it was deployed? Pure: from facts to findings. */
import { percentileOf } from "../../contracts/reports.ts";
import { countOf } from "../durations.ts";
import { type Explanation, explanation, type Finding, found, type PastTrouble } from "../finding.ts";
import { serverFindings } from "../server-findings.ts";
import { count, duration, percent } from "../words.ts";
import { startFindings } from "../worker-findings.ts";
import type { ApiFacts, TrafficFacts } from "./api-facts.ts";
import { judgeFailures, stillFail } from "./judge-failures.ts";
import { rejectionFindings } from "./rejection-findings.ts";
import { rolloutFindings } from "./rollout-findings.ts";
import { fewErrorsFindings, trafficFindings } from "./traffic-findings.ts";

export function explainApi(facts: ApiFacts): Explanation {
  const findings = [
    ...serverFindings(facts.server),
    ...unreadable(facts),
    ...rolloutFindings(facts),
    ...trafficFindings(facts),
    ...rejectionFindings(facts),
    ...jobFindings(facts),
    ...targetFindings(facts),
    ...facts.troubles.map((trouble) => troubleNow(trouble, facts)),
    ...fewErrorsFindings(facts),
  ];
  return explanation({ api_name: facts.name, job_id: null }, findings, () => well(facts));
}

/** Minutes that failed say nothing about the seconds since then. */
export function troubleNow(
  { kind, finding, over }: PastTrouble,
  { traffic }: Pick<ApiFacts, "traffic">,
): Finding {
  return kind === "slow" || traffic === undefined || stillFail(traffic) ? finding : over;
}

function unreadable({ name, unreadable: why }: ApiFacts): Finding[] {
  if (why === undefined) return [];
  return [
    found("version_unreadable", "error", "The deployed version cannot be read", {
      evidence: [why],
      cure: "deploy the API again; its last good route serves until then",
      command: `quern get ${name}`,
    }),
  ];
}

function jobFindings({ name, jobs }: ApiFacts): Finding[] {
  if (jobs === undefined) return [];
  const { pausedTime, installingS, findings } = jobs;
  const logs = `quern logs ${name}`;
  const starting = { workers: [], what: "worker", startupTimeoutS: 0, installingS, logs } as const;
  return [
    ...(pausedTime === undefined ? [] : [apiPaused(name, pausedTime)]),
    ...startFindings(starting),
    ...findings,
  ];
}

export function apiPaused(name: string, since: string): Finding {
  return found("api_paused", "warning", `${name} is paused: none of its jobs begins a batch`, {
    evidence: [`paused since ${since}`],
    cure: "continue it; the paused time does not count towards the timeout of its jobs",
    command: `quern unpause ${name}`,
  });
}

function targetFindings({ targets }: ApiFacts): Finding[] {
  return targets.flatMap(({ name, weight, findings }) =>
    findings
      .filter(({ severity }) => severity !== "info")
      .map((finding) => ({ ...finding, title: `${name} (${weight} %): ${finding.title}` })),
  );
}

function well(facts: ApiFacts): Finding | undefined {
  const { name, rollout, traffic, jobs, targets } = facts;
  if (rollout !== undefined && rollout.upToDate < rollout.wanted) return undefined;
  const evidence = [
    rollout === undefined ? undefined : `${rollout.upToDate} of ${count(rollout.wanted, "replica")} serve`,
    ...(traffic === undefined ? [] : figures(traffic)),
    jobs === undefined ? undefined : `${count(jobs.running, "job")} in progress`,
    targets.length === 0
      ? undefined
      : `it sends requests to ${targets.map((target) => `${target.name} (${target.weight} %)`).join(", ")}`,
  ];
  return found("all_well", "info", `Nothing is wrong with ${name}`, { evidence });
}

function figures(traffic: TrafficFacts): string[] {
  const { tally, seconds, inFlight } = traffic;
  const requests = countOf(tally.duration);
  const last = `in the last ${duration(seconds)}`;
  if (requests === 0) return [`no request ${last}`];
  const p = (share: number) => duration(percentileOf(tally.duration.buckets, share) ?? 0);
  // Another finding says how many failed before.
  const isOver = judgeFailures(traffic).state === "over";
  const errors = isOver ? "" : `, ${percent(tally.answers["5xx"] ?? 0, requests)} of them with a 5xx status`;
  return [
    `${count(requests, "request")} ${last}${errors}; ${inFlight} in flight`,
    `latency: p50 ${p(0.5)}, p95 ${p(0.95)}, p99 ${p(0.99)}; wait for a replica: p95 ${duration(percentileOf(tally.wait.buckets, 0.95) ?? 0)}`,
  ];
}
