/** Why was this API slow or failing at a time in the past, and what changed just before? Pure: from facts to findings. */
import { percentileOf } from "../../contracts/reports.ts";
import { type Explanation, type Finding, found } from "../finding.ts";
import { minute, period } from "../past-times.ts";
import { count, duration, percent } from "../words.ts";
import { changeFindings } from "./change-findings.ts";
import { type Episode, episodesAt, nearest, type Run, runsOfDay } from "./episodes.ts";
import { BASE_STEPS_LEAST, summed } from "./measures.ts";
import type { PastFacts, PastStepFacts } from "./past-facts.ts";
import { OVER_STEPS, spanOf, symptomFindings } from "./symptom-findings.ts";

/** Fewer requests in a run are no reason to say that the API was slow. */
const REQUESTS_LEAST = 5;
/** An API that is slow again and again has many runs; each takes a millisecond. */
const RUNS_TRIED = 5;
/** What began less than so many steps ago is explained with what is now. */
const OPEN_STEPS_LEAST = 5;
/** So many steps before a run say what was usual. */
const USUAL_STEPS = 60;

export function explainPast(facts: PastFacts): Explanation {
  const { name, atS } = facts;
  const episodes = asked(facts, episodesAt(facts));
  const run = together(episodes);
  const about = { api_name: name, job_id: null };
  if (run === undefined) {
    const calm = nothingDiffered(facts);
    return { ...about, summary: calm.title, findings: [calm], past: { at: iso(atS), from: null, to: null } };
  }
  const symptoms = symptomFindings(facts, episodes);
  const changes = changeFindings(facts, run);
  const { fromS, toS } = spanOf(facts, run);
  const [first] = changes;
  const why =
    first === undefined ? "nothing that the server knows of changed just before" : lowered(first.title);
  return {
    ...about,
    summary: `${symptoms[0]!.title}; ${why}`,
    findings: [...symptoms, ...(changes.length > 0 ? changes : [nothingChanged(facts)])],
    past: { at: iso(atS), from: iso(fromS), to: iso(toS) },
  };
}

/**
 * Those that belong to the time that was asked for: first the one that has it or is nearest to it, then those that
 * overlap with that one. Something else that differed minutes before has another cause.
 */
function asked({ steps, atS }: PastFacts, episodes: readonly Episode[]): Episode[] {
  const at = steps.findLastIndex(({ startS }) => startS <= atS);
  const main = nearest(episodes, at, Number.POSITIVE_INFINITY);
  if (main === undefined) return [];
  const isBeside = (one: Episode) => one !== main && one.first <= main.last && one.last >= main.first;
  return [main, ...episodes.filter(isBeside)];
}

/** From the first step in which something differed to the last. */
function together(episodes: readonly Episode[]): Run | undefined {
  if (episodes.length === 0) return undefined;
  return {
    first: Math.min(...episodes.map(({ first }) => first)),
    last: Math.max(...episodes.map(({ last }) => last)),
  };
}

function lowered(title: string): string {
  return `${title[0]!.toLowerCase()}${title.slice(1)}`;
}

function iso(timeS: number): string {
  return new Date(timeS * 1000).toISOString();
}

function nothingDiffered(facts: PastFacts): Finding {
  const { name, atS, stepS, steps } = facts;
  const at = steps.findLastIndex(({ startS }) => startS <= atS);
  const near = steps.slice(Math.max(0, at - 10), at + 11);
  const known = near.filter(({ requests }) => requests > 0);
  const command = `quern series ${name} --since ${stepS === 60 ? "24h" : "336h"}`;
  if (known.length === 0)
    return found("nothing_known", "info", `No request is known of around ${minute(atS)}`, {
      evidence: [near.some(({ replicas }) => replicas !== null) ? "the API was deployed then" : undefined],
      cure: "the plots show when there were requests: minutes are kept for a day, hours for two weeks",
      command,
    });
  const measured = steps.slice(0, Math.max(0, at)).filter(({ requests }) => requests > 0);
  const lacksBase = measured.length < BASE_STEPS_LEAST;
  return found(
    "nothing_differed",
    "info",
    lacksBase
      ? `There is too little before ${minute(atS)} to compare with`
      : `Nothing differed around ${minute(atS)} from the hours before`,
    {
      evidence: [
        figures(known, period({ fromS: known[0]!.startS, toS: known.at(-1)!.startS + stepS })),
        measured.length === 0
          ? undefined
          : figures(measured, period({ fromS: measured[0]!.startS, toS: measured.at(-1)!.startS + stepS })),
      ],
      cure: "a time with a higher latency or more errors says more: the plots show them",
      command,
    },
  );
}

function figures(steps: readonly PastStepFacts[], when: string): string {
  const [requests, errors] = [sum(steps.map((step) => step.requests)), sum(steps.map((step) => step.errors))];
  const p95 = percentileOf(summed(steps.map(({ durations }) => durations)), 0.95) ?? 0;
  return `${when}: ${count(requests, "request")}, p95 ${duration(p95)}, ${percent(errors, requests)} with a 5xx status`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function nothingChanged({ name }: PastFacts): Finding {
  return found("nothing_changed", "info", "Nothing that the server knows of changed just before", {
    evidence: ["no new version, no replica that ended, not many more requests, and no job that began"],
    cure: "look at what the server does not see: larger payloads, what predict() calls (a database, another service), other programs of the machine",
    command: `quern logs ${name}`,
  });
}

/**
 * What the explanation of now says about the last day: that the API has been slow or failing for a while, compared with
 * the time before; or else the newest such time that is over. `steps` are the minutes of that day.
 */
export function recentPast(name: string, steps: readonly PastStepFacts[]): Finding | undefined {
  const runs = runsOfDay(steps).filter(({ first, last }) => {
    const requests = sum(steps.slice(first, last + 1).map((step) => step.requests));
    return requests >= REQUESTS_LEAST;
  });
  const isFound = ({ first }: Run) =>
    episodesAt({ steps: steps.slice(0, first + 30), atS: steps[first]!.startS, stepS: 60 }).length > 0;
  const isOpen = ({ last }: Run) => last >= steps.length - OVER_STEPS;
  const newest = runs.at(-1);
  if (
    newest !== undefined &&
    isOpen(newest) &&
    newest.last - newest.first >= OPEN_STEPS_LEAST &&
    isFound(newest)
  )
    return ofDay(name, steps, newest, []);
  const over = runs.filter((run) => !isOpen(run));
  const run = over.slice(-RUNS_TRIED).findLast(isFound);
  return run === undefined ? undefined : ofDay(name, steps, run, over);
}

/** `over`: all runs that are over, if this is one of them. */
function ofDay(name: string, steps: readonly PastStepFacts[], run: Run, over: readonly Run[]): Finding {
  const { first, last } = run;
  const fromS = steps[first]!.startS;
  const worst = steps.slice(first, last + 1);
  const usual = steps.slice(Math.max(0, first - USUAL_STEPS), first).filter(({ requests }) => requests > 0);
  const [errors, requests] = [sum(worst.map((step) => step.errors)), sum(worst.map((step) => step.requests))];
  const [verb, adjective] = errors > requests / 20 ? ["failed", "failing"] : ["were slow", "slow"];
  const isOpen = over.length === 0;
  const rest = {
    evidence: [
      figures(worst, isOpen ? "since then" : "then"),
      usual.length === 0 ? undefined : figures(usual, "before"),
      over.length > 1 ? `${count(over.length - 1, "other time")} in the last day` : undefined,
    ],
    cure: "this says what changed just before",
    command: `quern explain ${name} --at ${minute(fromS)}`,
  };
  if (isOpen)
    return found("became_slow", "warning", `Requests have been ${adjective} since ${minute(fromS)}`, rest);
  const when = period({ fromS, toS: steps[last]!.startS + 60 });
  return found("was_slow", "info", `Requests ${verb} ${when}; it is over`, rest);
}
