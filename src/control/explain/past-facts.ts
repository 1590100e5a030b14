/** Gathers what an explanation of a time in the past needs: the series, what changed, and which jobs began. */
import { ServiceError } from "../../contracts/errors.ts";
import type { PastTrouble } from "../../explain/finding.ts";
import type { PastFacts } from "../../explain/past/past-facts.ts";
import { recentTroubles } from "../../explain/past/recent-troubles.ts";
import { changesIn } from "../../series/change-rows.ts";
import { pastSteps } from "../../series/past-steps.ts";
import type { SeriesDeps } from "../../series/read-series.ts";
import { HOUR_S, keptFrom, MINUTE_S, minutesFrom, moment, startOf } from "../../series/steps.ts";
import type { ExplainDeps } from "./explain-deps.ts";
import { loggedExceptions } from "./logged-exceptions.ts";

/** How far an explanation looks back from the time that was asked for, and beyond it, in seconds. */
const REACH = {
  [MINUTE_S]: { beforeS: 6 * HOUR_S, afterS: 6 * HOUR_S },
  [HOUR_S]: { beforeS: 72 * HOUR_S, afterS: 6 * HOUR_S },
} as const;
const DAY_S = 24 * HOUR_S;

/** `at`: as callers write it. Throws `invalid_request` and `api_not_found`. */
export async function pastFacts(
  deps: ExplainDeps,
  name: string,
  at: string,
  nowS: number,
): Promise<PastFacts> {
  const { kind } = await deps.apis.deployed.get(name);
  const atS = moment("at", at, nowS);
  assertKnown(name, kind, atS, nowS);
  const stepS = atS >= minutesFrom(nowS) ? MINUTE_S : HOUR_S;
  const { beforeS, afterS } = REACH[stepS];
  const window = {
    startS: Math.max(startOf(atS - beforeS, stepS), keptFrom(stepS, nowS)),
    endS: Math.min(startOf(atS + afterS, stepS), startOf(nowS, stepS)) + stepS,
    stepS,
  };
  const span = { fromS: window.startS, toS: window.endS };
  const steps = await pastSteps(deps.series, name, window, nowS);
  return {
    ...{ name, atS, nowS, stepS, steps },
    changes: (await changesIn(deps.series.db, name, span)).map(({ at_s, by_id, by_name, ...change }) => ({
      ...change,
      atS: at_s,
      by: by_name ?? by_id,
    })),
    jobs: await jobsIn(deps, span),
    exceptions: await loggedExceptions(deps.apiLogDirectory(name), { fromS: atS - 600, toS: atS + 600 }),
  };
}

function assertKnown(name: string, kind: string, atS: number, nowS: number): void {
  const invalid = (message: string) => new ServiceError("invalid_request", message);
  if (kind === "BatchAPI")
    throw invalid(
      `${name} is a BatchAPI, and only real-time APIs can be explained at a time: \`quern explain ${name} JOB\` explains one of its jobs`,
    );
  if (atS > nowS) throw invalid("at must not be in the future");
  if (atS < keptFrom(HOUR_S, nowS))
    throw invalid("at must be within the last 14 days: nothing is kept of the time before");
}

async function jobsIn({ jobs }: ExplainDeps, { fromS, toS }: { fromS: number; toS: number }) {
  const begun = await jobs.found.begun(fromS * 1000, toS * 1000);
  return begun.map(({ api_name, job_id, workers, round, start_time, end_time }) => ({
    ...{ apiName: api_name, jobId: job_id, workers, round },
    startedS: Date.parse(start_time) / 1000,
    endedS: end_time === null ? null : Date.parse(end_time) / 1000,
  }));
}

/** So many APIs are remembered. */
const KNOWN_MAX = 200;

/** What explanations of now say about the last day. It changes with the minute, and dashboards ask often. */
export class RecentPasts {
  private readonly series: SeriesDeps;
  private readonly known = new Map<string, { minuteS: number; troubles: Promise<PastTrouble[]> }>();

  constructor(series: SeriesDeps) {
    this.series = series;
  }

  of(name: string, nowS: number): Promise<PastTrouble[]> {
    const minuteS = startOf(nowS, MINUTE_S);
    const last = this.known.get(name);
    if (last?.minuteS === minuteS) return last.troubles;
    const troubles = this.read(name, nowS);
    this.known.delete(name);
    this.known.set(name, { minuteS, troubles });
    if (this.known.size > KNOWN_MAX) this.known.delete(this.known.keys().next().value!);
    // The next request tries again.
    troubles.catch(() => this.known.delete(name));
    return troubles;
  }

  private async read(name: string, nowS: number): Promise<PastTrouble[]> {
    const endS = startOf(nowS, MINUTE_S) + MINUTE_S;
    const window = { startS: endS - DAY_S, endS, stepS: MINUTE_S };
    return recentTroubles(name, await pastSteps(this.series, name, window, nowS));
  }
}
