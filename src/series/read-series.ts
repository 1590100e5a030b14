/** Reads series: of an API, a job, or all APIs together. */
import { quotedBeginning } from "../base/printable.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  SERIES_METRICS,
  type Series,
  type SeriesMetric,
  type SeriesValues,
} from "../contracts/http/series-operations.ts";
import { percentileOf } from "../contracts/reports.ts";
import type { Database } from "../database/database.ts";
import { uncounted } from "./batch-rows.ts";
import { DURATION_COLUMNS, WAIT_COLUMNS } from "./buckets.ts";
import { CountedSteps, type CountRow } from "./counted-steps.ts";
import { levelRows } from "./level-rows.ts";
import { type LevelName, levelsIn } from "./levels.ts";
import type { SeriesRecorder } from "./recorder.ts";
import { HOUR_S, timesOf, type Window, type WindowQuery, windowOf } from "./steps.ts";
import { findSubject, type Subject } from "./subject.ts";

export interface SeriesQuery extends WindowQuery {
  api?: string | undefined;
  job?: string | undefined;
  metrics: readonly string[];
}

const OF_JOBS = ["batches", "failed_batches"] as const;
const OF_SERVER: readonly SeriesMetric[] = ["cpus_reserved"];
const LEVELS: Partial<Record<SeriesMetric, LevelName>> = {
  replicas: "replicas",
  in_flight: "in_flight",
  queue_depth: "queue_depth",
  cpus_reserved: "cpus",
};
const PERCENTILES: Partial<Record<SeriesMetric, readonly [columns: readonly string[], share: number]>> = {
  latency_p50: [DURATION_COLUMNS, 0.5],
  latency_p95: [DURATION_COLUMNS, 0.95],
  latency_p99: [DURATION_COLUMNS, 0.99],
  wait_p95: [WAIT_COLUMNS, 0.95],
};
const COUNTS: Partial<Record<SeriesMetric, string>> = {
  requests: "requests",
  errors: "errors",
  rejected: "rejected",
  batches: "succeeded",
  failed_batches: "failed",
};
/** A rate over less time jumps. */
const RATE_OVER_S = 10;

export interface SeriesDeps {
  db: Database;
  recorder: Pick<SeriesRecorder, "currentMinute" | "unsaved">;
}

/** Throws `invalid_request`, `api_not_found` and `job_not_found`. */
export async function readSeries(deps: SeriesDeps, query: SeriesQuery, nowS: number): Promise<Series> {
  const window = windowOf(query, nowS);
  const metrics = metricsOf(query);
  const subject = await findSubject(deps.db, query);
  const counted = new CountedSteps(window, { knownFromS: subject.knownFromS, nowS });
  const levels = metrics.some((metric) => metric in LEVELS)
    ? await readLevels(deps, subject, window, nowS)
    : undefined;
  counted.add(await requestRows(deps, subject, metrics, window));
  counted.add(await rejectionRows(deps, subject, metrics, window));
  counted.add(await batchRows(deps, subject, metrics, window));
  const valuesOf = (metric: SeriesMetric): Pick<SeriesValues, "values" | "total"> => {
    const [level, shares, count] = [LEVELS[metric], PERCENTILES[metric], COUNTS[metric]];
    if (level !== undefined) return { values: levels![level], total: null };
    if (count !== undefined)
      return { values: counted.rates(count, RATE_OVER_S), total: counted.total(count) };
    const [columns, share] = shares!;
    return { values: counted.each((sums) => percentileOf(columns.map(sums), share)), total: null };
  };
  return {
    api: subject.api === "" ? null : subject.api,
    job_id: subject.jobId === "" ? null : subject.jobId,
    step_s: window.stepS,
    times: timesOf(window),
    metrics: metrics.map((metric) => ({
      metric,
      unit: SERIES_METRICS[metric][0],
      ...rounded(valuesOf(metric)),
    })),
  };
}

/** The metrics that a request names, or all of its subject. */
function metricsOf({ api, job, metrics }: SeriesQuery): SeriesMetric[] {
  const all = Object.keys(SERIES_METRICS) as SeriesMetric[];
  const allowed =
    job !== undefined
      ? [...OF_JOBS]
      : all.filter((metric) => api === undefined || !OF_SERVER.includes(metric));
  const asked = [...new Set(metrics)];
  const wrong = asked.find((metric) => !(allowed as string[]).includes(metric));
  if (wrong === undefined) return asked.length === 0 ? allowed : (asked as SeriesMetric[]);
  const whose = job !== undefined ? " of a job" : api !== undefined ? " of an API" : "";
  throw new ServiceError(
    "invalid_request",
    `metric${whose} must be one of ${allowed.join(", ")} (got ${quotedBeginning(wrong)})`,
  );
}

async function readLevels({ db, recorder }: SeriesDeps, { api }: Subject, window: Window, nowS: number) {
  const saved = await levelRows(db, api, window);
  const rows = [...saved, ...recorder.unsaved(api)].sort((a, b) => a.at_s - b.at_s);
  return levelsIn(rows, window, nowS);
}

/** Sums by step. An hour's row belongs to steps of an hour and more; shorter ones know only minutes. */
function sumsIn({ startS, endS, stepS }: Window, columns: readonly string[]) {
  const sums = columns.map((name) => `SUM(${name}) AS ${name}`).join(", ");
  const minutesOnly = stepS < HOUR_S ? "AND step_s = 60" : "";
  return {
    select: `SELECT (at_s / ${stepS}) * ${stepS} AS start_s, ${sums}`,
    where: `at_s >= ${startS} AND at_s < ${endS} ${minutesOnly} GROUP BY start_s`,
  };
}

async function requestRows(
  { db }: SeriesDeps,
  { api, jobId }: Subject,
  metrics: readonly SeriesMetric[],
  window: Window,
): Promise<CountRow[]> {
  const counts = metrics.filter((metric) => metric === "requests" || metric === "errors");
  const columns = [...new Set([...counts, ...metrics.flatMap((metric) => PERCENTILES[metric]?.[0] ?? [])])];
  if (jobId !== "" || columns.length === 0) return [];
  const { select, where } = sumsIn(window, columns);
  return db.all<CountRow>(`${select} FROM series_requests WHERE api_name = ? AND ${where}`, [api]);
}

async function rejectionRows(
  { db }: SeriesDeps,
  { api, jobId }: Subject,
  metrics: readonly SeriesMetric[],
  { startS, endS, stepS }: Window,
): Promise<CountRow[]> {
  if (jobId !== "" || !metrics.includes("rejected")) return [];
  const minutesOnly = stepS < HOUR_S ? "AND step_s = 60" : "";
  return db.all<CountRow>(
    `SELECT (at_s / ${stepS}) * ${stepS} AS start_s, SUM(requests) AS rejected FROM series_rejections
     WHERE api_name = ? AND at_s >= ${startS} AND at_s < ${endS} ${minutesOnly} GROUP BY start_s`,
    [api],
  );
}

/** With what the jobs have counted since the last minute ended. */
async function batchRows(
  { db, recorder }: SeriesDeps,
  { api, jobId }: Subject,
  metrics: readonly SeriesMetric[],
  window: Window,
): Promise<CountRow[]> {
  if (!metrics.some((metric) => metric === "batches" || metric === "failed_batches")) return [];
  const { select, where } = sumsIn(window, ["succeeded", "failed"]);
  const rows = await db.all<CountRow>(
    `${select} FROM series_batches WHERE api_name = ? AND job_id = ? AND ${where}`,
    [api, jobId],
  );
  if (window.endS <= recorder.currentMinute) return rows;
  const newest = await uncounted(db, { api: api || undefined, job: jobId || undefined });
  const start_s = recorder.currentMinute;
  return [...rows, ...newest.map(({ succeeded, failed }) => ({ start_s, succeeded, failed }))];
}

/** Six digits are enough for a plot, and make the response short. */
function rounded({ values, total }: Pick<SeriesValues, "values" | "total">) {
  return { values: values.map((value) => (value === null ? null : Number(value.toPrecision(6)))), total };
}
