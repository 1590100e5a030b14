/** What holds for replicas and workers of jobs alike: their start, and their memory. Pure. */
import type { WorkerFacts } from "./facts.ts";
import { type Finding, found } from "./finding.ts";
import { count, duration, percent, size } from "./words.ts";

/** A peak above this share of the limit is a near-miss. */
const NEAR = 0.9;
/** A start that has used this share of its timeout is slow. */
const SLOW_SHARE = 0.5;
/** An installation that takes longer needs to be looked at. */
const INSTALLATION_LONG_S = 60;

export interface Starting {
  workers: readonly WorkerFacts[];
  what: "replica" | "worker";
  startupTimeoutS: number;
  /** Since when its packages are being installed, in seconds; undefined if they are not. */
  installingS: number | undefined;
  /** `quern logs …` */
  logs: string;
}

export function startFindings({ workers, what, startupTimeoutS, installingS, logs }: Starting): Finding[] {
  if (installingS !== undefined) return [installing(installingS, logs)];
  const starting = workers.filter(({ state }) => state === "initializing");
  if (starting.length === 0) return [];
  const oldestS = Math.max(...starting.map(({ ageS }) => ageS));
  const evidence = [
    `the oldest process has run for ${duration(oldestS)} without being ready`,
    `predictor.startup_timeout ends it after ${duration(startupTimeoutS)}`,
  ];
  const isSlow = oldestS >= SLOW_SHARE * startupTimeoutS;
  if (!isSlow) return [found("starting", "info", `${count(starting.length, what)} starting`, { evidence })];
  const title = `__init__ takes long: ${duration(oldestS)} of the ${duration(startupTimeoutS)} that it may take`;
  return [
    found("start_slow", "warning", title, {
      evidence,
      cure: "the log shows how far __init__ is: it may hang, load a large model or wait for a download; if it only needs longer, raise predictor.startup_timeout",
      command: logs,
    }),
  ];
}

function installing(seconds: number, logs: string): Finding {
  const isLong = seconds >= INSTALLATION_LONG_S;
  return found(
    "installing",
    isLong ? "warning" : "info",
    `The packages of the project are being installed, for ${duration(seconds)} now`,
    {
      evidence: ["nothing of this version starts before they are installed"],
      cure: isLong
        ? "the log shows how far it is; wheels are faster than packages that are built from source"
        : "wait; the log shows how far it is",
      command: logs,
    },
  );
}

/** The worker that was closest to its limit. */
export function memoryFindings(workers: readonly WorkerFacts[], command: string): Finding[] {
  const near = workers.flatMap(({ id, memory }) => {
    if (memory?.limitBytes === undefined || memory.peakBytes < NEAR * memory.limitBytes) return [];
    return [{ id, ...memory, limitBytes: memory.limitBytes }];
  });
  const [worst] = near.sort((a, b) => b.peakBytes / b.limitBytes - a.peakBytes / a.limitBytes);
  if (worst === undefined) return [];
  const { id, bytes, peakBytes, limitBytes } = worst;
  return [
    found(
      "memory_near_limit",
      "warning",
      `A worker came within 10 % of its memory limit of ${size(limitBytes)}`,
      {
        evidence: [
          `worker ${id} used up to ${size(peakBytes)}, ${percent(peakBytes, limitBytes)} of compute.mem`,
          `it uses ${size(bytes)} now`,
          near.length > 1 ? `${near.length} workers came as close` : undefined,
        ],
        cure: "raise compute.mem, or make batches or inputs smaller: a worker over its limit is killed",
        command,
      },
    ),
  ];
}
