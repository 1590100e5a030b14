/**
 * Whether requests fail in predict() now, or did until a moment ago. The page of an API and the overview of all say the
 * same, because both ask here. Pure.
 */
import { countRejected } from "../../contracts/reports.ts";
import { countOf } from "../durations.ts";
import type { Switched, TrafficFacts } from "./api-facts.ts";

/** A smaller share of errors is less important than what makes all requests slow. */
export const FEW_FAIL = 0.02;
/** From this share on, most requests fail; once they do, until it falls below the other one. */
const [MOST, MOST_UNTIL] = [0.5, 0.4];
/** Errors that came less long ago, or before fewer requests, may go on. */
const [OVER_LEAST_S, OVER_LEAST] = [10, 10];

export interface Failures {
  state: "none" | "failing" | "over";
  failed: number;
  /** Among so many requests. Of what is over, those until the last failure. */
  all: number;
  /** They are those of this version alone; if they are over, those of the version before. */
  since: Switched | undefined;
}

type Counted = Pick<TrafficFacts, "tally" | "lastFailures" | "switched">;

/** Once another version serves alone, only its own requests say whether some fail. */
export function judgeFailures({ tally, lastFailures, switched: since }: Counted): Failures {
  const failed = Math.max(0, (tally.answers["5xx"] ?? 0) - countRejected(tally.rejected, 500));
  const all = countOf(tally.duration);
  if (since === undefined) return judged(failed, all, lastFailures, since);
  if (since.failed > 0)
    return judged(since.failed, Math.max(since.requests, since.failed), lastFailures, since);
  return { state: failed > 0 ? "over" : "none", failed, all: Math.max(failed, all - since.requests), since };
}

function judged(
  failed: number,
  all: number,
  last: TrafficFacts["lastFailures"],
  since: Switched | undefined,
): Failures {
  if (failed === 0) return { state: "none", failed, all, since };
  if (last === undefined || !areOver(failed, all, last)) return { state: "failing", failed, all, since };
  return { state: "over", failed, all: Math.max(failed, all - last.requestsSince), since };
}

export function areFew({ failed, all }: Pick<Failures, "failed" | "all">): boolean {
  return failed < FEW_FAIL * all;
}

/** `wereMost`: what was said before, so that a share around one half does not change it each second. */
export function areMost(failed: number, all: number, wereMost: boolean): boolean {
  return failed > 0 && failed >= (wereMost ? MOST_UNTIL : MOST) * all;
}

/** Whether requests still fail that failed over whole minutes. */
export function stillFail(traffic: TrafficFacts): boolean {
  const { state } = judgeFailures(traffic);
  const all = countOf(traffic.tally.duration);
  const refused = countRejected(traffic.tally.rejected, 500);
  if (state === "failing" || (refused > 0 && refused >= FEW_FAIL * all)) return true;
  // Just after a start of the controller, too little is known to say that it is over.
  return state === "none" && traffic.switched === undefined && all < OVER_LEAST;
}

/**
 * Whether enough requests without an error have followed the last one to rule out chance: if requests failed as often
 * as before, so many without a failure would come once in twenty times.
 */
export function areOver(
  failed: number,
  all: number,
  { agoS, requestsSince }: { agoS: number; requestsSince: number },
): boolean {
  const before = Math.max(failed, all - requestsSince);
  return agoS >= OVER_LEAST_S && requestsSince >= OVER_LEAST && requestsSince * failed >= 3 * before;
}
