/** `quern series`: what happened per minute or hour, as a table with a small plot for each metric. */
import { prettyJson } from "../../base/json/exact.ts";
import type { Series, SeriesValues } from "../../contracts/http/series-operations.ts";
import { DURATION_PATTERN } from "../../contracts/keys.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { age, dateTime, table } from "../terminal/table.ts";
import { watched } from "../terminal/watch.ts";
import { largest, plot, smallest } from "./plot.ts";

export interface SeriesOptions {
  metric?: string;
  since: string;
  step?: string;
}

const PLOT_WIDTH = 60;

export function showSeries(
  context: CliContext,
  api: string | undefined,
  job: string | undefined,
  options: SeriesOptions,
): Promise<number> {
  if (!DURATION_PATTERN.test(options.since))
    throw new CliError(
      `--since must be a duration such as 1h, 30m or 24h (got "${options.since}")`,
      EXIT.usage,
    );
  const metrics = options.metric?.split(",") ?? [];
  return watched(context, async ({ client, output, out }) => {
    const query = { api, job, metric: metrics, from: options.since, step: options.step };
    const { value, text } = await client.json<Series>("/-/series", { query });
    await out(output === "json" ? `${prettyJson(text)}\n` : shown(value, metrics.length > 0));
    return EXIT.success;
  });
}

/** Metrics that say nothing are left out, unless `areNamed`. */
function shown({ times, step_s, metrics }: Series, areNamed: boolean): string {
  const start = dateTime(new Date(times[0]! * 1000).toISOString());
  const telling = areNamed ? metrics : metrics.filter(({ values }) => (largest(values) ?? 0) > 0);
  if (telling.length === 0) return `nothing happened since ${start}\n`;
  const head = ["metric", "unit", "last", "lowest", "highest", "total*", "plot"];
  return `since ${start}, in steps of ${age(step_s * 1000)}\n\n${table(head, telling.map(cells))}\n`;
}

function cells({ metric, unit, values, total }: SeriesValues): string[] {
  const last = values.findLast((value) => value !== null) ?? null;
  const numbers = [last, smallest(values), largest(values)].map(figure);
  return [metric, unit, ...numbers, total === null ? "" : String(total), plot(values, PLOT_WIDTH)];
}

function figure(value: number | null): string {
  return value === null ? "-" : String(Number(value.toPrecision(3)));
}
