/** Why does this job wait, run slowly, or fail? Pure: from facts to findings. */
import { type Explanation, explanation, type Finding, found } from "../finding.ts";
import { serverFindings } from "../server-findings.ts";
import { count, duration, percent } from "../words.ts";
import { endFinding, succeeded } from "./end-findings.ts";
import { failureFindings } from "./failure-findings.ts";
import type { JobFacts } from "./job-facts.ts";
import { etaS, leftOf, letterFindings, progressFindings } from "./progress-findings.ts";
import { waitFindings } from "./wait-findings.ts";

export function explainJob(facts: JobFacts): Explanation {
  const about = { api_name: facts.apiName, job_id: facts.jobId };
  if (facts.ended !== undefined) {
    const end = endFinding(facts);
    const findings = [
      ...(end === undefined ? [] : [end]),
      ...failureFindings(facts),
      ...letterFindings(facts),
    ];
    const isDone = facts.status === "status_succeeded";
    return explanation(about, findings, () => (isDone ? succeeded(facts) : undefined));
  }
  const findings = [
    ...serverFindings(facts.server),
    ...waitFindings(facts),
    ...failureFindings(facts),
    ...progressFindings(facts),
  ];
  return explanation(about, findings, () => well(facts));
}

/** Only if it is worth a line: the first batches may take long, and there is no average yet. */
function oldestInHand({ workers }: JobFacts): string | undefined {
  const oldestS = Math.max(0, ...workers.map(({ busy }) => busy?.forS ?? 0));
  return oldestS < 1 ? undefined : `the oldest batch in hand has run for ${duration(oldestS)}`;
}

/** Said while the job makes progress, and nothing needs anybody. */
function well(facts: JobFacts): Finding | undefined {
  const { counts, total, succeeded: done, failedBatches, averageS, workersAsked } = facts;
  if (facts.isEnding || total === undefined) return undefined;
  const settled = done + failedBatches;
  const eta = etaS(facts);
  const title = `The job runs: ${percent(settled, total)} of ${count(total, "batch")} are settled`;
  return found("all_well", "info", title, {
    evidence: [
      `${count(counts.running, "worker")} of ${workersAsked} running, ${count(leftOf(facts), "batch")} left`,
      averageS === undefined
        ? "no batch has succeeded yet"
        : `a batch takes ${duration(averageS)} on average`,
      eta === undefined ? undefined : `it needs about ${duration(eta)} more`,
      oldestInHand(facts),
    ],
  });
}
