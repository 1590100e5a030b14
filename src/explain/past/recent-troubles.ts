/**
 * What the explanation of now says about the last day: since when an API has been slow or failing, compared with the time
 * before, or else the newest such time that is over. Pure.
 */
import { type Finding, found, type PastTrouble } from "../finding.ts";
import { minute, period } from "../past-times.ts";
import { count } from "../words.ts";
import { episodesAt, type Run, runsOfDay } from "./episodes.ts";
import { figures, requestsIn } from "./figures.ts";
import type { PastStepFacts } from "./past-facts.ts";
import { OVER_STEPS } from "./symptom-findings.ts";

/** Fewer requests in a run are no reason to say that the API was slow. */
const REQUESTS_LEAST = 5;
/** An API that is slow again and again has many runs; each takes a millisecond. */
const RUNS_TRIED = 5;
/** What began less than so many steps ago is explained with what is now. */
const OPEN_STEPS_LEAST = 5;
/** So many steps before a run say what was usual. */
const USUAL_STEPS = 60;

interface TroubleRun extends Run {
  kind: PastTrouble["kind"];
}

const MEASURE_OF = { failing: "errors", slow: "latency" } as const;

/** `steps` are the minutes of that day, of which the last is in progress. Failing comes before slow. */
export function recentTroubles(name: string, steps: readonly PastStepFacts[]): PastTrouble[] {
  const runs = runsIn(steps);
  const open = runs.filter((run) => isOpen(steps, run) && isLong(run) && isFound(steps, run));
  if (open.length > 0) return open.map((run) => ofDay(name, steps, run, 0));
  const over = runs.filter((run) => !isOpen(steps, run)).sort((a, b) => a.last - b.last);
  const newest = over.slice(-RUNS_TRIED).findLast((run) => isFound(steps, run));
  if (newest === undefined) return [];
  const others = over.filter(({ first, last }) => last < newest.first || first > newest.last);
  return [ofDay(name, steps, newest, others.length)];
}

/**
 * The minute in progress belongs to no run: a slow request among its first ones would make a trouble that is over look
 * as if it went on.
 */
function runsIn(steps: readonly PastStepFacts[]): TroubleRun[] {
  const { failing, slow } = runsOfDay(steps.slice(0, -1));
  return [
    ...failing.map((run) => ({ ...run, kind: "failing" as const })),
    ...slow.map((run) => ({ ...run, kind: "slow" as const })),
  ].filter(({ first, last }) => requestsIn(steps.slice(first, last + 1)) >= REQUESTS_LEAST);
}

function isOpen(steps: readonly PastStepFacts[], { last }: Run): boolean {
  return last >= steps.length - OVER_STEPS;
}

/** With the minute in progress. */
function isLong({ first, last }: Run): boolean {
  return last + 1 - first >= OPEN_STEPS_LEAST;
}

function isFound(steps: readonly PastStepFacts[], { first, kind }: TroubleRun): boolean {
  const around = { steps: steps.slice(0, first + 30), atS: steps[first]!.startS, stepS: 60 };
  return episodesAt(around).some(({ measure }) => measure.name === MEASURE_OF[kind]);
}

/** `others`: how many other such times are over. */
function ofDay(name: string, steps: readonly PastStepFacts[], run: TroubleRun, others: number): PastTrouble {
  const { first, last, kind } = run;
  const fromS = steps[first]!.startS;
  const usual = steps.slice(Math.max(0, first - USUAL_STEPS), first).filter(({ requests }) => requests > 0);
  const says = (severity: Finding["severity"], title: string, when: string) =>
    found(severity === "info" ? "was_slow" : "became_slow", severity, title, {
      evidence: [
        figures(steps.slice(first, last + 1), when, whole(steps, run)),
        usual.length === 0 ? undefined : figures(usual, "before"),
        others > 0 ? `${count(others, "other time")} in the last day` : undefined,
      ],
      cure: `see what changed just before ${minute(fromS)}`,
      command: `quern explain ${name} --at ${minute(fromS)}`,
    });
  const when = period({ fromS, toS: steps[last]!.startS + 60 });
  const over = says(
    "info",
    `Requests ${kind === "failing" ? "failed" : "were slow"} ${when}; it is over`,
    "then",
  );
  if (!isOpen(steps, run)) return { kind, isOpen: false, finding: over, over };
  const since = `Requests have been ${kind} since ${minute(fromS)}`;
  return { kind, isOpen: true, finding: says("warning", since, "since then"), over };
}

/** It began in its first minute and ended in its last: those between are the trouble alone. */
function whole(steps: readonly PastStepFacts[], { first, last, kind }: TroubleRun): readonly PastStepFacts[] {
  const all = steps.slice(first, last + 1);
  return kind === "failing" && all.length > 2 ? all.slice(1, -1) : all;
}
