/** Whether requests of an API fail now: the overview asks each second about many, so all of it is in memory. */
import { countRejected } from "../../contracts/reports.ts";
import { areFew, areMost, areOver, judgeFailures, stillFail } from "../../explain/api/judge-failures.ts";
import { countOf } from "../../explain/durations.ts";
import type { ExplainDeps } from "./explain-deps.ts";
import { trafficFacts } from "./traffic-facts.ts";

/** Fewer failed requests need nobody. */
const FAILED_LEAST = 5;

/** `error`: most of them. */
export function failingNow(deps: ExplainDeps, name: string): "error" | "warning" | undefined {
  const facts = trafficFacts(deps, name, deps.replicas.group(name)?.version);
  const failures = judgeFailures(facts);
  const { state, failed, all } = failures;
  if (state === "failing" && failed >= FAILED_LEAST && !areFew(failures))
    return areMost(failed, all, facts.wereMost) ? "error" : "warning";
  const refusals = { failed: countRejected(facts.tally.rejected, 500), all: countOf(facts.tally.duration) };
  if (refusals.failed < FAILED_LEAST || areFew(refusals)) return undefined;
  const last = deps.reports.traffic.lastErrors(name);
  const agoS = last && (performance.now() - last.atMs) / 1000;
  if (
    agoS !== undefined &&
    areOver(refusals.failed, refusals.all, { agoS, requestsSince: last!.requestsSince })
  )
    return undefined;
  return areMost(refusals.failed, refusals.all, false) ? "error" : "warning";
}

/** Whether they still do, if they failed over whole minutes. */
export function stillFails(deps: ExplainDeps, name: string): boolean {
  return stillFail(trafficFacts(deps, name, deps.replicas.group(name)?.version));
}
