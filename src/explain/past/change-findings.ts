/** What changed just before something differed: versions, replicas, jobs, the number of requests. Pure. */
import { type Finding, found } from "../finding.ts";
import { minute } from "../past-times.ts";
import { count, replaced, short } from "../words.ts";
import type { Run } from "./episodes.ts";
import { medianOf } from "./measures.ts";
import type { PastChange, PastFacts, PastJob, PastStepFacts } from "./past-facts.ts";

/** What happened so long before may be the cause. */
const BEFORE_S = 15 * 60;
/** A version that was deployed so long before is suspected first. */
const RECENT_S = 5 * 60;
/** So many times the usual requests are more, if they are so many more. */
const MORE = 1.5;
const MORE_LEAST = 10;
const JOBS_SHOWN = 5;
/** The first steps of what differed show which levels it began with. */
const FIRST_STEPS = 3;

/** `run`: what differed. The most telling change first. */
export function changeFindings(facts: PastFacts, run: Run): Finding[] {
  const { steps, stepS } = facts;
  const onsetS = steps[run.first]!.startS;
  const span = { fromS: onsetS - Math.max(BEFORE_S, stepS), toS: onsetS + stepS };
  const isIn = (timeS: number) => timeS >= span.fromS && timeS < span.toS;
  // The end of a replica is noticed after the requests that failed with it.
  const isEndIn = (timeS: number) => timeS >= span.fromS && timeS < span.toS + stepS;
  const around = {
    base: steps.slice(0, run.first),
    before: steps.filter(({ startS }) => startS >= span.fromS && startS < onsetS),
    first: steps.slice(run.first, Math.min(run.last + 1, run.first + FIRST_STEPS)),
    all: steps.slice(run.first, run.last + 1),
  };
  const changes = facts.changes
    .filter(({ atS, kind }) => (kind === "replica_ended" ? isEndIn(atS) : isIn(atS)))
    .reverse();
  // Before the first version there was nothing that can have been better.
  const versions = changes.filter(({ kind, former }) => kind !== "replica_ended" && former !== null);
  const isRecent = ({ atS }: PastChange) => onsetS - atS <= RECENT_S;
  const deployed = (these: readonly PastChange[]) =>
    these.map((change) => newVersion(facts.name, change, onsetS));
  return [
    ...deployed(versions.filter(isRecent)),
    ...replicasFell(
      facts,
      changes.filter(({ kind }) => kind === "replica_ended"),
      around,
    ),
    ...deployed(versions.filter((change) => !isRecent(change))),
    ...serverWasAway(around),
    ...moreRequests(around, stepS),
    ...jobsBegan(
      // One that ended before could slow nothing.
      facts.jobs.filter(({ startedS, endedS }) => isIn(startedS) && (endedS === null || endedS >= onsetS)),
      around,
    ),
  ];
}

interface Around {
  /** All steps before. */
  base: readonly PastStepFacts[];
  /** Those just before. */
  before: readonly PastStepFacts[];
  first: readonly PastStepFacts[];
  all: readonly PastStepFacts[];
}

function newVersion(name: string, { atS, kind, detail, former, by }: PastChange, onsetS: number): Finding {
  const what =
    kind === "rolled_back" ? "The API was rolled back to another version" : "A new version was deployed";
  const minutes = Math.round((onsetS - atS) / 60);
  const when = minutes > 0 ? `${count(minutes, "minute")} before` : "just before";
  return found("version_changed", "warning", `${what} at ${minute(atS)}, ${when}`, {
    evidence: [
      replaced(detail, former ?? ""),
      by === null ? undefined : `by ${short(by)}`,
      "new replicas also load their model, and serve their first requests more slowly",
    ],
    cure: "see what changed between the two versions; go back to the one before if it did not have this problem",
    command: `quern rollback ${name} ${former}`,
  });
}

/** Fewer replicas than before, or some that ended. */
function replicasFell({ name }: PastFacts, ends: readonly PastChange[], { base, first }: Around): Finding[] {
  const usual = medianOf(base.slice(-30).map(({ replicas }) => replicas));
  const least = Math.min(...first.map(({ replicas }) => replicas ?? Number.POSITIVE_INFINITY));
  const isFewer = usual !== null && least < usual;
  const went = isFewer ? `replicas went from ${usual} to ${least}` : undefined;
  const lost = ends.reduce((sum, { times }) => sum + times, 0);
  if (lost > 0)
    return [
      found("replicas_lost", "warning", `${count(lost, "replica")} ended unexpectedly just before`, {
        evidence: [
          ...ends.slice(-3).map(({ atS, detail }) => `at ${minute(atS)} one ${short(detail)}`),
          went,
          "requests that such a replica had got 502, and the others had more to do until its successor was ready",
        ],
        cure: "the log has its last output; raise compute.mem if it ran out of memory",
        command: `quern logs ${name}`,
      }),
    ];
  if (!isFewer) return [];
  return [
    found("replicas_fell", "warning", `Fewer replicas served: ${least} instead of ${usual}`, {
      evidence: [
        "nobody knows of one that died: the autoscaler or somebody scaled down, or new ones were starting",
      ],
      cure: "raise autoscaling.min_replicas if the load rises faster than replicas start",
      command: `quern series ${name} --metric replicas,requests --since 24h`,
    }),
  ];
}

/** Nothing is known of some minutes just before, and something is of those before them. */
function serverWasAway({ base, before }: Around): Finding[] {
  const isKnown = ({ replicas }: PastStepFacts) => replicas !== null;
  const away = before.filter((step) => !isKnown(step));
  // The API may be that young.
  if (away.length === 0 || !base.some((step) => isKnown(step) && step.startS < away[0]!.startS)) return [];
  return [
    found(
      "server_restarted",
      "warning",
      `The server was stopped just before, until ${minute(away.at(-1)!.startS + 60)}`,
      {
        evidence: ["its replicas started again with it, and load their model first"],
        cure: "restart it when few requests come; its log says who stopped it",
      },
    ),
  ];
}

function moreRequests({ base, all }: Around, stepS: number): Finding[] {
  const usual = medianOf(base.map(({ requests }) => (requests > 0 ? requests : null)));
  const mean = all.reduce((sum, { requests }) => sum + requests, 0) / all.length;
  if (usual === null || mean < Math.max(MORE * usual, usual + MORE_LEAST)) return [];
  const per = stepS === 60 ? "a minute" : "an hour";
  return [
    found(
      "requests_rose",
      "warning",
      `${Number((mean / usual).toFixed(1))} times as many requests came as before`,
      {
        evidence: [`${count(Math.round(mean), "request")} ${per}, instead of ${Math.round(usual)}`],
        cure: "if so many are expected, raise autoscaling.max_replicas, and min_replicas if they come suddenly; a key with a --rate limits one caller",
        command: "quern patch quern.yaml",
      },
    ),
  ];
}

function jobsBegan(jobs: readonly PastJob[], { base, first }: Around): Finding[] {
  if (jobs.length === 0) return [];
  const [was, is] = [
    medianOf(base.slice(-30).map(({ cpus }) => cpus)),
    medianOf(first.map(({ cpus }) => cpus)),
  ];
  // They stay the same, too, if a job took what a replica had.
  const areOthers = was !== null && is !== null && is.toFixed(2) !== was.toFixed(2);
  const { apiName, jobId } = jobs[0]!;
  const number = new Set(jobs.map((job) => job.jobId)).size;
  return [
    found("jobs_began", "warning", `${count(number, "job")} began just before`, {
      evidence: [
        ...jobs.slice(0, JOBS_SHOWN).map(jobSpan),
        jobs.length > JOBS_SHOWN ? `${jobs.length - JOBS_SHOWN} more` : undefined,
        areOthers
          ? `reserved CPUs of the server: ${Number(is.toFixed(2))} instead of ${Number(was.toFixed(2))}`
          : undefined,
      ],
      cure: "workers of jobs share the machine with replicas: give jobs fewer workers, or their own machine",
      command: `quern explain ${apiName} ${jobId}`,
    }),
  ];
}

function jobSpan({ apiName, jobId, workers, round, startedS, endedS }: PastJob): string {
  const until = endedS === null ? "and still runs" : `and ended at ${minute(endedS)}`;
  const which = round === 1 ? "" : `round ${round} of `;
  return `${which}${apiName} ${jobId} with ${count(workers, "worker")} began at ${minute(startedS)} ${until}`;
}
