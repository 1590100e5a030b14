/** The figures of some steps in a line. Pure. */
import { percentileOf } from "../../contracts/reports.ts";
import { count, duration, percent } from "../words.ts";
import { summed } from "./measures.ts";
import type { PastStepFacts } from "./past-facts.ts";

/** `failing`: the steps whose share of failed requests is given, if not that of all. */
export function figures(
  steps: readonly PastStepFacts[],
  when: string,
  failing: readonly PastStepFacts[] = steps,
): string {
  const p95 = percentileOf(summed(steps.map(({ durations }) => durations)), 0.95) ?? 0;
  const share = percent(errorsIn(failing), requestsIn(failing));
  return `${when}: ${count(requestsIn(steps), "request")}, p95 ${duration(p95)}, ${share} with a 5xx status`;
}

export function requestsIn(steps: readonly PastStepFacts[]): number {
  return steps.reduce((sum, { requests }) => sum + requests, 0);
}

function errorsIn(steps: readonly PastStepFacts[]): number {
  return steps.reduce((sum, { errors }) => sum + errors, 0);
}
