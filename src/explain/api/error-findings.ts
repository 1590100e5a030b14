/** Requests that fail in predict(): how many, with which exceptions, and since or until when. Pure. */
import { type Finding, found } from "../finding.ts";
import { minute, second } from "../past-times.ts";
import { count, duration, percent, replaced, short } from "../words.ts";
import type { ApiFacts, Switched, TrafficFacts } from "./api-facts.ts";
import { areMost, type Failures, judgeFailures } from "./judge-failures.ts";

type Facts = Pick<ApiFacts, "name" | "rollout"> & { traffic: TrafficFacts };

export function errorFindings({ name, rollout, traffic }: ApiFacts): Finding[] {
  if (traffic === undefined) return [];
  const failures = judgeFailures(traffic);
  if (failures.state === "none") return [];
  return [
    failures.state === "failing"
      ? failing({ name, rollout, traffic }, failures)
      : over(name, traffic, failures),
  ];
}

function failing({ name, rollout, traffic }: Facts, { failed, all, since }: Failures): Finding {
  const { seconds, exceptions, wereMost } = traffic;
  const [first] = exceptions;
  const most = first === undefined ? "" : `: ${short(first.text, 120)}`;
  const share = percent(failed, all);
  const isRolling = isRollingOut(rollout);
  const ids = isRolling ? undefined : since?.ids;
  const title =
    since === undefined
      ? `${share} of requests fail in predict()${most}`
      : `${switchedAt(since)}; ${share} of requests since then fail in predict()${most}`;
  const when = since === undefined ? `in the last ${duration(seconds)}` : "since then";
  return found("predict_errors", areMost(failed, all, wereMost) ? "error" : "warning", title, {
    evidence: [
      `${count(failed, "request")} of ${all} failed ${when}`,
      ...logged(exceptions),
      ids && replaced(ids.version, ids.former),
    ],
    cure: isRolling
      ? "another version is starting; these requests are those of the version before, so wait until it serves alone"
      : "correct what the traceback in the log shows and deploy again, or go back to an earlier version",
    // The version before a rollback was left for its faults.
    command:
      ids !== undefined && since?.how === "deployed"
        ? `quern rollback ${name} ${ids.former}`
        : `quern logs ${name}`,
  });
}

function over(name: string, traffic: TrafficFacts, { failed, all, since }: Failures): Finding {
  const { exceptions, lastFailures } = traffic;
  const share = percent(failed, all);
  const none = `none of ${count(lastFailures?.requestsSince ?? 0, "request")} since`;
  const [title, when] =
    since !== undefined && since.failed === 0
      ? [`${switchedAt(since)}; since then ${count(since.requests, "request")}, 0 failed`, "before"]
      : [
          `${share} of requests failed in predict() until ${minute(lastFailures?.atS ?? 0)}, ${none}`,
          "until then",
        ];
  return found("predict_errors", "info", title, {
    evidence: [
      `${when}, ${failed} of ${count(all, "request")} failed in predict(): ${share}`,
      ...logged(exceptions),
    ],
    command: `quern logs ${name}`,
  });
}

function switchedAt({ how, atS }: Switched): string {
  return `${how === "rolled_back" ? "Rolled back" : "A new version was deployed"} at ${second(atS)}`;
}

function isRollingOut(rollout: ApiFacts["rollout"]): boolean {
  if (rollout === undefined || rollout.failure !== undefined) return false;
  return rollout.replicas.some(({ isNew, state }) => !isNew && state !== "gone");
}

function logged(exceptions: TrafficFacts["exceptions"]): string[] {
  return exceptions.slice(0, 3).map((one) => `${one.count} times at the end of the log: ${short(one.text)}`);
}
