/** Why replicas of a real-time API are missing: failures of the newest version, compute, starts, crashes. Pure. */
import { computeFinding } from "../compute-findings.ts";
import { type Cause, type Finding, found } from "../finding.ts";
import { count, duration, short } from "../words.ts";
import { memoryFindings, type Starting, startFindings } from "../worker-findings.ts";
import type { ApiFacts, FailureKind, RolloutFacts } from "./api-facts.ts";

/** How a failed start is called, and what repairs it. */
const FAILURES: Record<FailureKind, { cause: Cause; what: string; cure: string }> = {
  requirements: {
    cause: "requirements_failed",
    what: "its requirements cannot be installed",
    cure: "correct requirements.txt and deploy again; the log has the installer's output",
  },
  timeout: {
    cause: "start_timed_out",
    what: "__init__ takes longer than predictor.startup_timeout",
    cure: "the log shows how far __init__ came; if it only needs longer, raise predictor.startup_timeout",
  },
  memory: {
    cause: "start_out_of_memory",
    what: "a replica ran out of memory",
    cure: "raise compute.mem, or load less in __init__; then deploy again",
  },
  init: {
    cause: "init_failed",
    what: "__init__ fails",
    cure: "correct what the traceback in the log shows, and deploy again",
  },
  death: {
    cause: "worker_died_in_start",
    what: "the process dies before it is ready",
    cure: "the log has its last output: look for os._exit, a crash in native code, or a missing library",
  },
  other: {
    cause: "start_failed",
    what: "a replica cannot be started",
    cure: "correct what the message says; the server tries again by itself",
  },
};

export function rolloutFindings({ name, compute, rollout }: ApiFacts): Finding[] {
  if (rollout === undefined) return [];
  const { replicas, startupTimeoutS, installingS } = rollout;
  const logs = `quern logs ${name}`;
  const isDone = rollout.upToDate >= rollout.wanted;
  const starting = { workers: replicas, what: "replica", startupTimeoutS, installingS, logs } as const;
  return [
    ...failureFindings(name, rollout),
    ...crashFindings(name, rollout),
    ...lackFindings(rollout, compute),
    ...(isDone || rollout.failure !== undefined || rollout.lacks !== undefined
      ? []
      : startsOf(starting, rollout)),
    ...memoryFindings(replicas, `quern describe ${name}`),
    ...restFindings(rollout),
  ];
}

/** Between two processes there is none for a moment. */
function startsOf(starting: Starting, { upToDate, wanted }: RolloutFacts): Finding[] {
  const findings = startFindings(starting);
  if (findings.length > 0 || wanted === 0) return findings;
  return [
    found("starting", "info", `${upToDate} of ${count(wanted, "replica")} serve; others are about to start`),
  ];
}

/** The replicas of former versions that serve. */
function oldServing({ replicas }: RolloutFacts): number {
  return replicas.filter(({ state, isNew }) => state === "ready" && !isNew).length;
}

function failureFindings(name: string, rollout: RolloutFacts): Finding[] {
  const { failure, upToDate, wanted } = rollout;
  if (failure === undefined || upToDate >= wanted) return [];
  const { cause, what, cure } = FAILURES[failure.kind];
  const serving = oldServing(rollout);
  const evidence = [
    short(failure.message, 400),
    `${upToDate} of ${wanted} replicas of the newest version serve`,
    serving > 0
      ? `${count(serving, "process")} of the version before ${serving === 1 ? "serves" : "serve"} all requests`
      : undefined,
    "the server tries again by itself, with growing pauses",
  ];
  if (serving > 0)
    return [
      found(
        "rollout_failing",
        "warning",
        `The new version cannot start (${what}); the version before still serves`,
        {
          evidence: [`cause: ${cause}`, ...evidence],
          cure: `${cure}; or go back to the version that serves`,
          command: `quern rollback ${name}`,
        },
      ),
    ];
  const isServing = upToDate > 0;
  const title = `${isServing ? "Replicas are missing" : "The API does not serve"}: ${what}`;
  return [
    found(cause, isServing ? "warning" : "error", title, { evidence, cure, command: `quern logs ${name}` }),
  ];
}

function crashFindings(name: string, { isCrashing, restarts, lastExit }: RolloutFacts): Finding[] {
  if (!isCrashing) return [];
  return [
    found("crash_loop", "error", "Replicas keep dying soon after they became ready", {
      evidence: [
        `${count(restarts, "replica")} ended unexpectedly since the controller started`,
        lastExit === undefined ? undefined : `the last one ${short(lastExit)}`,
      ],
      cure: "the log has their last output; correct it and deploy again, or go back to an earlier version",
      command: `quern logs ${name}`,
    }),
  ];
}

function lackFindings(rollout: RolloutFacts, compute: ApiFacts["compute"]): Finding[] {
  const { lacks: need, wanted, upToDate } = rollout;
  if (need === undefined) return [];
  const serving = oldServing(rollout);
  const wait = {
    missing: wanted - upToDate,
    what: "replica",
    need,
    isServing: upToDate + serving > 0,
  } as const;
  const finding = computeFinding(wait, compute);
  if (serving === 0 || finding.cause !== "compute_held") return [finding];
  const title = `The rollout waits for compute beside the version that serves: ${finding.title}`;
  return [{ ...finding, cause: "rollout_waits", title }];
}

/** What is as it should be, and yet explains why a request takes longer. */
function restFindings({ wanted, upToDate, because, min, failure, lacks, replicas }: RolloutFacts): Finding[] {
  if (wanted === 0)
    return [
      found("scaled_to_zero", "info", "The API has no replica, because it gets no requests", {
        evidence: [`replicas: ${because}`, `autoscaling.min_replicas is ${min}`],
        cure: "the next request starts one and waits for it; with min_replicas: 1 none has to wait",
      }),
    ];
  const isWaking = upToDate === 0 && because === "woken by a request";
  if (!isWaking || failure !== undefined || lacks !== undefined) return [];
  const ageS = Math.max(0, ...replicas.map(({ ageS }) => ageS));
  return [
    found("waking", "info", "The first replica is starting, because a request came: requests wait for it", {
      evidence: [`it has been starting for ${duration(ageS)}`],
      cure: "with autoscaling.min_replicas: 1 no request has to wait for a start",
    }),
  ];
}
