/** Why was this API slow or failing at a time in the past, and what changed just before? Pure: from facts to findings. */
import { type Explanation, type Finding, found } from "../finding.ts";
import { minute, period } from "../past-times.ts";
import { changeFindings } from "./change-findings.ts";
import { type Episode, episodesAt, nearest, type Run } from "./episodes.ts";
import { figures } from "./figures.ts";
import { BASE_STEPS_LEAST } from "./measures.ts";
import type { PastFacts } from "./past-facts.ts";
import { spanOf, symptomFindings } from "./symptom-findings.ts";

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

function nothingChanged({ name }: PastFacts): Finding {
  return found("nothing_changed", "info", "Nothing that the server knows of changed just before", {
    evidence: ["no new version, no replica that ended, not many more requests, and no job that began"],
    cure: "look at what the server does not see: larger payloads, what predict() calls (a database, another service), other programs of the machine",
    command: `quern logs ${name}`,
  });
}
