/** Why a job in progress does nothing: it is paused, or waits for a turn, a store, compute or a start. Pure. */
import { computeFinding } from "../compute-findings.ts";
import { type Finding, found } from "../finding.ts";
import { count, short } from "../words.ts";
import { startFindings } from "../worker-findings.ts";
import type { JobFacts } from "./job-facts.ts";

export function waitFindings(facts: JobFacts): Finding[] {
  const { paused, isEnding } = facts;
  if (isEnding) return [...storeFindings(facts), ending(facts)];
  if (paused !== undefined) return [pausedFinding(facts, paused)];
  return [...storeFindings(facts), ...computeFindings(facts), ...startsOf(facts), ...enqueueFindings(facts)];
}

function ending({ apiName, jobId }: JobFacts): Finding {
  return found("job_ending", "info", "The work is done: the end of the job is being written", {
    cure: "wait; if its store does not respond, it ends once that is back",
    command: `quern job logs ${apiName} ${jobId}`,
  });
}

function pausedFinding(
  { apiName, jobId }: JobFacts,
  { by, since }: NonNullable<JobFacts["paused"]>,
): Finding {
  const evidence = [`paused since ${since}`, "the paused time does not count towards its timeout"];
  if (by === "api")
    return found("api_paused", "warning", `The job is paused with its API ${apiName}`, {
      evidence,
      cure: "continue the API",
      command: `quern unpause ${apiName}`,
    });
  if (by === "user")
    return found("job_paused", "warning", "The job is paused", {
      evidence,
      cure: "continue it",
      command: `quern job unpause ${apiName} ${jobId}`,
    });
  return found(
    "job_paused_in_copy",
    "warning",
    "The job is paused: this server runs on a copy of a data directory",
    {
      evidence: [...evidence, "it would write to the same outputs and queues as the original's"],
      cure: "continue all such jobs if the original does not run any more, or stop this one",
      command: "quern job unpause --all",
    },
  );
}

function storeFindings({ storeError, apiName, jobId }: JobFacts): Finding[] {
  if (storeError === undefined) return [];
  return [
    found("store_unreachable", "error", "The store does not respond: the job waits for it", {
      evidence: [short(storeError, 400), "it tries again with growing pauses, for up to 15 minutes"],
      cure: "repair the store or the network; the job continues by itself. If it ends before that, resume it",
      command: `quern job logs ${apiName} ${jobId}`,
    }),
  ];
}

function computeFindings({ counts, need, compute, waiting }: JobFacts): Finding[] {
  const missing = counts.pending + counts.stalled;
  if (missing === 0 || need === undefined) return [];
  if (waiting?.includes(" for open files: ") === true) return [openFilesFinding(waiting)];
  const delay = /; ((?:it is the next|\d+ other|\d+ jobs? of higher|\d+ workers? of (?:an)?other).*)$/.exec(
    waiting ?? "",
  )?.[1];
  const order = compute.isOfCluster === true ? waiting : delay;
  const isServing = counts.running > 0;
  return [computeFinding({ missing, what: "worker", need, isServing, order }, compute)];
}

function openFilesFinding(waiting: string): Finding {
  return found("open_files_short", "warning", "The server may open too few files for more workers", {
    evidence: [waiting],
    cure: "raise LimitNOFILE of the server's service, or `ulimit -n` before you start it; until then they start as others end",
    command: "quern doctor",
  });
}

function startsOf({ workers, startupTimeoutS, installingS, apiName, jobId, counts }: JobFacts): Finding[] {
  const logs = `quern job logs ${apiName} ${jobId}`;
  const isInstalling = installingS !== undefined && counts.running === 0;
  return startFindings({
    ...{ workers, what: "worker", startupTimeoutS, logs },
    installingS: isInstalling ? installingS : undefined,
  });
}

function enqueueFindings({
  phase,
  waiting,
  storeError,
  enqueuedBatches,
  total,
  counts,
  apiName,
  jobId,
}: JobFacts): Finding[] {
  if (phase === "dispatching" || phase === "none" || total !== undefined) return [];
  const command = `quern job logs ${apiName} ${jobId}`;
  if (phase === "preparing" && waiting !== undefined && storeError === undefined)
    return [
      found("enqueue_turn", "info", "The job waits for its turn to read its input", {
        evidence: [waiting],
        cure: "wait; few jobs of an API read their input at once",
        command,
      }),
    ];
  return [
    found("reading_input", "info", `The job reads its input: ${count(enqueuedBatches, "batch")} so far`, {
      evidence: [
        "no batch runs before the whole input is read, so that a bad line fails the job early",
        counts.running > 0 ? `${count(counts.running, "worker")} ready and waiting` : undefined,
        waiting,
      ],
      cure: "wait; a large listing or a slow store takes long here",
      command,
    }),
  ];
}
