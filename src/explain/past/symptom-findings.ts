/** What differed: for each measure a sentence with its figures, from when to when, and what was normal. Pure. */
import { ERRORS, type ErrorCode } from "../../contracts/errors.ts";
import { percentileOf } from "../../contracts/reports.ts";
import { type Cause, type Finding, found } from "../finding.ts";
import { period } from "../past-times.ts";
import { count, duration, percent, short } from "../words.ts";
import type { Episode } from "./episodes.ts";
import { medianOf, rejectedIn, summed } from "./measures.ts";
import type { PastFacts, PastStepFacts } from "./past-facts.ts";

/** From this share of failed requests on, it is an error and not a warning. */
const MOST = 0.5;
const EXCEPTIONS_SHOWN = 3;

/** The wait is told with the latency that it causes; alone only if the whole request hardly changed. */
export function symptomFindings(facts: PastFacts, episodes: readonly Episode[]): Finding[] {
  const isSlow = episodes.some(({ measure }) => measure.name === "latency");
  return episodes
    .filter(({ measure }) => measure.name !== "wait" || !isSlow)
    .map((episode) => symptom(facts, episode));
}

function symptom(facts: PastFacts, episode: Episode): Finding {
  const steps = facts.steps.slice(episode.first, episode.last + 1);
  const when = period(spanOf(facts, episode));
  const { name } = episode.measure;
  if (name === "errors") return errorsRose(facts, episode, steps, when);
  return name === "rejected" ? rejectionsRose(episode, steps, when) : slower(facts, episode, steps, when);
}

/** From the start of its first step to the end of its last, which may be in progress. */
export function spanOf({ steps, stepS, nowS }: PastFacts, { first, last }: Pick<Episode, "first" | "last">) {
  const toS = Math.min(nowS, steps[last]!.startS + stepS);
  return { fromS: steps[first]!.startS, toS, isOpen: last >= steps.length - OVER_STEPS };
}

/** What ended later is still going on, or only just over. */
export const OVER_STEPS = 2;

function total(steps: readonly PastStepFacts[], of: (step: PastStepFacts) => number): number {
  return steps.reduce((sum, step) => sum + of(step), 0);
}

/** `p50 12 ms, p95 1.2 s` */
function percentiles(histograms: readonly (readonly number[])[]): string {
  const buckets = summed(histograms);
  const [p50, p95] = [0.5, 0.95].map((part) => percentileOf(buckets, part) ?? 0);
  return `p50 ${duration(p50!)}, p95 ${duration(p95!)}`;
}

function slower(facts: PastFacts, episode: Episode, steps: readonly PastStepFacts[], when: string): Finding {
  const isWait = episode.measure.name === "wait";
  const [whole, wait] = [steps.map(({ durations }) => durations), steps.map(({ waits }) => waits)];
  const value = percentileOf(summed(isWait ? wait : whole), 0.95) ?? 0;
  const before = duration(episode.normal.median);
  const what = isWait ? "Requests waited long for a replica" : "Requests were slow";
  const base = facts.steps.slice(0, episode.first);
  const waitBefore = medianOf(base.map(({ waits }) => percentileOf(waits, 0.95)));
  const isWaiting = (percentileOf(summed(wait), 0.95) ?? 0) >= value / 2;
  const cause: Cause = isWait ? "wait_rose" : "latency_rose";
  return found(cause, "warning", `${what} ${when}: 95 % took up to ${duration(value)} instead of ${before}`, {
    evidence: [
      `${count(
        total(steps, ({ requests }) => requests),
        "request",
      )}; whole request: ${percentiles(whole)}`,
      `wait for a replica: ${percentiles(wait)}${waitBefore === null ? "" : `; p95 was ${duration(waitBefore)} before`}`,
      isWaiting
        ? `most of it is the wait for a free replica: ${queue(steps, base)}`
        : "they hardly waited for a replica: predict() itself took longer",
      compared(facts, base),
    ],
    cure: isWaiting
      ? "more replicas shorten the wait: raise autoscaling.min_replicas or max_replicas, and see what changed just before"
      : "see what changed just before; predict() itself must become faster, or what it calls",
    command: isWaiting ? "quern patch quern.yaml" : `quern logs ${facts.name}`,
  });
}

function queue(steps: readonly PastStepFacts[], base: readonly PastStepFacts[]): string {
  const most = (all: readonly PastStepFacts[]) =>
    Math.max(0, ...all.map(({ queueDepth }) => queueDepth ?? 0));
  return `up to ${count(most(steps), "request")} waited at once, at most ${most(base)} before`;
}

/** What was normal is of these hours. */
function compared({ stepS }: PastFacts, base: readonly PastStepFacts[]): string | undefined {
  const measured = base.filter(({ requests }) => requests > 0);
  if (measured.length === 0) return undefined;
  const fromS = measured[0]!.startS;
  return `normal is what was ${period({ fromS, toS: base.at(-1)!.startS + stepS })}`;
}

function errorsRose(
  facts: PastFacts,
  episode: Episode,
  steps: readonly PastStepFacts[],
  when: string,
): Finding {
  const [errors, requests] = [total(steps, (step) => step.errors), total(steps, (step) => step.requests)];
  const refused = codesOf(steps).filter(([code]) => statusOf(code) >= 500);
  const refusals = refused.reduce((sum, [, times]) => sum + times, 0);
  const inPredict = Math.max(0, errors - refusals);
  const severity = errors >= MOST * requests ? "error" : "warning";
  const before = percent(episode.normal.median, 1);
  return found(
    "errors_rose",
    severity,
    `${percent(errors, requests)} of requests failed ${when}, ${before} before`,
    {
      evidence: [
        `${errors} of ${count(requests, "request")} had a 5xx status`,
        inPredict > 0 ? `${inPredict} of them failed in predict()` : undefined,
        ...refused.map(([code, times]) => `${times} times ${code} (${statusOf(code)}), without a prediction`),
        ...facts.exceptions
          .slice(0, EXCEPTIONS_SHOWN)
          .map(({ text, count: times }) => `the log has ${times} times: ${short(text)}`),
        compared(facts, facts.steps.slice(0, episode.first)),
      ],
      cure:
        inPredict > refusals
          ? "the log has the tracebacks; see what changed just before, and go back to an earlier version if it was a new one"
          : "see what changed just before: the requests reached no replica, or none in time",
      command: `quern logs ${facts.name}`,
    },
  );
}

function rejectionsRose(episode: Episode, steps: readonly PastStepFacts[], when: string): Finding {
  const [refused, requests] = [total(steps, rejectedIn), total(steps, (step) => step.requests)];
  const before = percent(episode.normal.median, 1);
  return found(
    "rejections_rose",
    "warning",
    `${percent(Math.min(refused, requests), requests)} of requests were refused ${when}, ${before} before`,
    {
      evidence: codesOf(steps).map(([code, times]) => `${times} times ${code} (${statusOf(code)})`),
      cure: "the code of the error says why: `quern explain` of a time when it happens says what to do",
    },
  );
}

/** Error codes with how often they came, the most frequent first. */
function codesOf(steps: readonly PastStepFacts[]): [code: string, times: number][] {
  const counts = new Map<string, number>();
  for (const { rejected } of steps)
    for (const [code, times] of Object.entries(rejected)) counts.set(code, (counts.get(code) ?? 0) + times);
  return [...counts].sort(([, a], [, b]) => b - a);
}

function statusOf(code: string): number {
  return ERRORS[code as ErrorCode]?.[0] ?? 0;
}
