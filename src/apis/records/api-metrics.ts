/**
 * The numbers of `quern get`: requests by status, their average time, predictions by class. They are stored as a few
 * rows per hour, so that no restart loses any. The last totals of each gateway are stored too, and only their growth is
 * added. The series (src/series/) get the same growth in the same transaction.
 */
import { METRICS_KEPT_MS } from "../../contracts/limits/predictions.ts";
import { emptyTally, finite, type Report, type Tally } from "../../contracts/reports.ts";
import { type Database, first, type Statements } from "../../database/database.ts";
import { forgetApiSeries } from "../../series/forget-series.ts";
import { addRequests } from "../../series/request-rows.ts";

export interface ApiMetricsView {
  requests: { "2xx": number; "4xx": number; "5xx": number };
  /** Milliseconds; null if there was no request. */
  avg_request_ms: number | null;
  /** The most frequent classes, if the API is monitored as a classification. */
  classes?: { name: string; count: number }[];
  values?: { count: number; avg: number; min: number; max: number };
}

/** A row of api_metrics: the counts of one hour. */
interface Grown {
  kind: "answers" | "duration" | "class" | "value";
  label: string;
  count: number;
  sum: number;
  least: number | null;
  most: number | null;
}

const CLASSES_SHOWN = 20;
/** JSON cannot express infinity, to which SQLite adds up; PostgreSQL refuses such a sum. */
const MOST = Number.MAX_VALUE;
/** More than the hours of METRICS_KEPT_MS. A power of two, so that dividing by it loses no digit. */
const ROWS_SUMMED_MAX = 1024;

/**
 * Adds the growth of a gateway's totals since its last report. `talliesText` is the totals as JSON, in pairs with the
 * API's name.
 */
export async function addReport(
  db: Database,
  { gateway, apis }: Report,
  talliesText: string,
  now: Date,
): Promise<void> {
  const hour = `${now.toISOString().slice(0, 13)}:00Z`;
  await db.transaction(async (tx) => {
    const row = await first<{ totals_json: string }>(
      tx,
      "SELECT totals_json FROM gateway_totals WHERE gateway = ?",
      [gateway],
    );
    const before = new Map(row === undefined ? [] : (JSON.parse(row.totals_json) as [string, Tally][]));
    for (const { name, tally } of apis)
      for (const grown of growth(tally, before.get(name) ?? emptyTally()))
        await addRow(tx, name, hour, grown);
    const grown = apis.map(({ name: api, tally }) => ({ api, now: tally, before: before.get(api) }));
    await addRequests(tx, grown, now.getTime() / 1000);
    await tx.run(
      "INSERT INTO gateway_totals (gateway, totals_json, reported_time) VALUES (?, ?, ?) ON CONFLICT (gateway) DO UPDATE SET totals_json = excluded.totals_json, reported_time = excluded.reported_time",
      [gateway, talliesText, now.toISOString()],
    );
  });
}

/** The last totals that each gateway reported, by API: what a later report has grown by is new. */
export async function storedTotals(db: Database): Promise<Map<string, [string, Tally][]>> {
  const rows = await db.all<{ gateway: string; totals_json: string }>(
    "SELECT gateway, totals_json FROM gateway_totals",
  );
  return new Map(rows.map((row) => [row.gateway, JSON.parse(row.totals_json) as [string, Tally][]]));
}

export async function readMetrics(db: Database, api: string): Promise<ApiMetricsView> {
  const rows = await db.all<Grown>(
    `SELECT kind, label, SUM(count) AS count, SUM(sum / ${ROWS_SUMMED_MAX}) AS sum, MIN(least) AS least, MAX(most) AS most
     FROM api_metrics WHERE api_name = ? GROUP BY kind, label ORDER BY count DESC, label`,
    [api],
  );
  for (const row of rows) row.sum = finite(row.sum * ROWS_SUMMED_MAX);
  const answers = (label: string) =>
    rows.find((row) => row.kind === "answers" && row.label === label)?.count ?? 0;
  const duration = rows.find((row) => row.kind === "duration");
  const classes = rows.filter((row) => row.kind === "class");
  const value = rows.find((row) => row.kind === "value");
  return {
    requests: { "2xx": answers("2xx"), "4xx": answers("4xx"), "5xx": answers("5xx") },
    avg_request_ms: duration === undefined ? null : (duration.sum / duration.count) * 1000,
    ...(classes.length === 0
      ? {}
      : { classes: classes.slice(0, CLASSES_SHOWN).map(({ label, count }) => ({ name: label, count })) }),
    ...(value === undefined
      ? {}
      : {
          values: {
            count: value.count,
            avg: finite(value.sum) / value.count,
            min: value.least!,
            max: value.most!,
          },
        }),
  };
}

export async function forgetMetrics(tx: Statements, api: string): Promise<void> {
  await tx.run("DELETE FROM api_metrics WHERE api_name = ?", [api]);
  await forgetApiSeries(tx, api);
}

/** Removes numbers that are older than two weeks, and gateways that have not reported for a day. */
export async function pruneMetrics(db: Database, now: Date): Promise<void> {
  const before = (ms: number) => new Date(now.getTime() - ms).toISOString();
  await db.run("DELETE FROM api_metrics WHERE hour < ?", [before(METRICS_KEPT_MS)]);
  await db.run("DELETE FROM gateway_totals WHERE reported_time < ?", [before(86_400_000)]);
}

function growth(now: Tally, before: Tally): Grown[] {
  const grown: Grown[] = [];
  const add = (kind: Grown["kind"], label: string, count: number, sum = 0) => {
    if (count > 0) grown.push({ kind, label, count, sum, least: null, most: null });
  };
  for (const [label, count] of Object.entries(now.answers))
    add("answers", label, count - (before.answers[label] ?? 0));
  const requests = sumOf(now.duration.buckets) - sumOf(before.duration.buckets);
  add("duration", "", requests, now.duration.sum_s - before.duration.sum_s);
  const classesBefore = new Map(before.classes);
  for (const [label, count] of now.classes) add("class", label, count - (classesBefore.get(label) ?? 0));
  const { values } = now;
  const counted = (values?.count ?? 0) - (before.values?.count ?? 0);
  if (values !== null && counted > 0) {
    const sum = finite(values.sum - (before.values?.sum ?? 0));
    grown.push({ kind: "value", label: "", count: counted, sum, least: values.least, most: values.most });
  }
  return grown;
}

async function addRow(tx: Statements, api: string, hour: string, grown: Grown): Promise<void> {
  await tx.run(
    `INSERT INTO api_metrics (api_name, hour, kind, label, count, sum, least, most) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (api_name, hour, kind, label) DO UPDATE SET count = api_metrics.count + excluded.count,
       sum = CASE WHEN excluded.sum > 0 AND api_metrics.sum > ${MOST} - excluded.sum THEN ${MOST}
         WHEN excluded.sum < 0 AND api_metrics.sum < -${MOST} - excluded.sum THEN -${MOST}
         ELSE api_metrics.sum + excluded.sum END,
       least = CASE WHEN excluded.least < api_metrics.least THEN excluded.least ELSE api_metrics.least END,
       most = CASE WHEN excluded.most > api_metrics.most THEN excluded.most ELSE api_metrics.most END`,
    [api, hour, grown.kind, grown.label, grown.count, grown.sum, grown.least, grown.most],
  );
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
