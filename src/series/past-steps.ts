/** Everything that the series know about the steps of an API, for explanations of a time in the past. */
import type { Database } from "../database/database.ts";
import { DURATION_COLUMNS, WAIT_COLUMNS } from "./buckets.ts";
import type { CountRow } from "./counted-steps.ts";
import { levelRows } from "./level-rows.ts";
import { levelsIn } from "./levels.ts";
import type { SeriesDeps } from "./read-series.ts";
import { REQUEST_COUNTS } from "./request-rows.ts";
import { startOf, timesOf, type Window } from "./steps.ts";

export interface PastStep {
  /** Unix seconds. */
  startS: number;
  requests: number;
  /** Those with status 5xx. */
  errors: number;
  /** Refused by the gateway, by error code. */
  rejected: Readonly<Record<string, number>>;
  /** Counts by bucket (contracts/reports.ts). */
  durations: readonly number[];
  waits: readonly number[];
  /** At the end of the step; null if nothing is known. */
  replicas: number | null;
  /** The most at once. */
  queueDepth: number | null;
  /** The most CPUs that the whole server had reserved at once. */
  cpus: number | null;
}

/** The steps of a window, up to now. A step without a row had no request. */
export async function pastSteps(
  { db, recorder }: SeriesDeps,
  api: string,
  window: Window,
  nowS: number,
): Promise<PastStep[]> {
  const levelsOf = async (name: string) => {
    const rows = [...(await levelRows(db, name, window)), ...recorder.unsaved(name)];
    return levelsIn(
      rows.sort((a, b) => a.at_s - b.at_s),
      window,
      nowS,
    );
  };
  const [own, server] = [await levelsOf(api), await levelsOf("")];
  const counts = byStep(await requestRows(db, api, window), window);
  const rejected = await rejectionsByStep(db, api, window);
  return timesOf(window).flatMap((startS, at) => {
    if (startS > nowS) return [];
    const count = (name: string) => counts.get(startS)?.[name] ?? 0;
    return [
      {
        startS,
        ...{ requests: count("requests"), errors: count("errors"), rejected: rejected.get(startS) ?? {} },
        ...{ durations: DURATION_COLUMNS.map(count), waits: WAIT_COLUMNS.map(count) },
        ...{ replicas: own.replicas[at]!, queueDepth: own.queue_depth[at]! },
        cpus: server.cpus[at]!,
      },
    ];
  });
}

/** Of minutes only, if the steps are shorter than an hour. */
function kindOf({ stepS }: Window): string {
  return stepS < 3_600 ? "AND step_s = 60" : "";
}

function requestRows(db: Database, api: string, window: Window): Promise<CountRow[]> {
  return db.all<CountRow>(
    `SELECT at_s AS start_s, ${REQUEST_COUNTS.join(", ")} FROM series_requests
     WHERE api_name = ? AND at_s >= ? AND at_s < ? ${kindOf(window)}`,
    [api, window.startS, window.endS],
  );
}

function byStep(rows: readonly CountRow[], { stepS }: Window): Map<number, CountRow> {
  const steps = new Map<number, CountRow>();
  for (const row of rows) {
    const startS = startOf(row.start_s, stepS);
    const known = steps.get(startS);
    if (known === undefined) steps.set(startS, { ...row });
    else for (const name of REQUEST_COUNTS) known[name] = known[name]! + row[name]!;
  }
  return steps;
}

async function rejectionsByStep(db: Database, api: string, window: Window) {
  const rows = await db.all<{ at_s: number; code: string; requests: number }>(
    `SELECT at_s, code, requests FROM series_rejections
     WHERE api_name = ? AND at_s >= ? AND at_s < ? ${kindOf(window)}`,
    [api, window.startS, window.endS],
  );
  const steps = new Map<number, Record<string, number>>();
  for (const { at_s, code, requests } of rows) {
    const startS = startOf(at_s, window.stepS);
    const counts = steps.get(startS) ?? {};
    steps.set(startS, { ...counts, [code]: (counts[code] ?? 0) + requests });
  }
  return steps;
}
