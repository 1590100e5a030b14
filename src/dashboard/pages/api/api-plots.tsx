/** The plots of an API over an hour, a day or two weeks. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, setQuery } from "../../address/address.ts";
import { LaterPlot } from "../../charts/later-plot.tsx";
import type { Line, PlotProps } from "../../charts/plot.tsx";
import { nowMs } from "../../format/now.ts";
import { rate, short } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { Section } from "../../parts/facts.tsx";
import { Choice } from "../../parts/filters.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { withQuery } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { Series } from "../../shapes.ts";
import { lookAt, type Past, PastField, PastFindings, usePast } from "./past.tsx";
import { MarkList, useMarks } from "./plot-marks.tsx";

export const RANGES: Record<string, { label: string; seconds: number; step: number; everyMs: number }> = {
  "1h": { label: "1 hour", seconds: 3600, step: 60, everyMs: 15_000 },
  "24h": { label: "24 hours", seconds: 86_400, step: 300, everyMs: 60_000 },
  "14d": { label: "14 days", seconds: 14 * 86_400, step: 3600, everyMs: 300_000 },
};

interface PlotOf {
  title: string;
  lines: readonly (readonly [metric: string, label: string, colour: string])[];
  format: (value: number) => string;
}

const REALTIME: readonly PlotOf[] = [
  {
    title: "Requests per second",
    lines: [
      ["requests", "requests", "busy"],
      ["errors", "errors", "bad"],
      ["rejected", "refused", "warn"],
    ],
    format: rate,
  },
  {
    title: "Latency",
    lines: [
      ["latency_p50", "p50", "good"],
      ["latency_p95", "p95", "busy"],
      ["latency_p99", "p99", "warn"],
    ],
    format: duration,
  },
  {
    title: "Waiting for a replica",
    lines: [
      ["queue_depth", "requests that wait", "warn"],
      ["in_flight", "in flight", "busy"],
    ],
    format: short,
  },
  { title: "Replicas", lines: [["replicas", "ready", "good"]], format: short },
];
const BATCH: readonly PlotOf[] = [
  {
    title: "Batches per second",
    lines: [
      ["batches", "succeeded", "good"],
      ["failed_batches", "failed attempts", "bad"],
    ],
    format: rate,
  },
];

interface ApiPlotsProps {
  api: string;
  /** Changes with each deployment. */
  version: string;
  isBatch?: boolean;
}

export function ApiPlots({ isBatch = false, ...api }: ApiPlotsProps) {
  return isBatch ? <PlotsWithMarks {...api} plots={BATCH} /> : <PlotsWithPast {...api} />;
}

/** A click on a plot, or the field, explains that minute. */
function PlotsWithPast(api: ApiPlotsProps) {
  const past = usePast(api.api);
  return <PlotsWithMarks {...api} plots={REALTIME} past={past} hasPast />;
}

function PlotsWithMarks({ api, version, ...props }: ApiPlotsProps & Omit<PlotsProps, "of">) {
  const { seconds } = chosenRange();
  const { marks, changes } = useMarks(api, minuteOf(nowMs() / 1000) - seconds, version);
  return (
    <Plots {...props} of={{ api }} marks={marks}>
      <MarkList api={api} changes={changes} />
    </Plots>
  );
}

export function JobPlots({ job }: { job: string }) {
  return <Plots plots={BATCH} of={{ job }} />;
}

interface PlotsProps {
  plots: readonly PlotOf[];
  of: { api?: string; job?: string };
  past?: Past | undefined;
  /** A time in the past can be explained. */
  hasPast?: boolean;
  marks?: PlotProps["marks"];
  /** Below the plots. */
  children?: ComponentChildren;
}

const minuteOf = (timeS: number) => Math.floor(timeS / 60) * 60;

function chosenRange() {
  const asked = address.value.query.get("range") ?? "1h";
  const id = Object.hasOwn(RANGES, asked) ? asked : "1h";
  return { id, ...RANGES[id]! };
}

function Plots({ plots, of, past, hasPast = false, marks, children }: PlotsProps) {
  const { id: range, seconds, step, everyMs } = chosenRange();
  const from = useStart(seconds, step, everyMs);
  const metrics = plots.flatMap(({ lines }) => lines.map(([metric]) => metric));
  const path = withQuery("/-/series", { metric: metrics, ...of, from, step });
  const series = useSteadySeries(path, everyMs);
  return (
    <Section
      title="Over time"
      actions={
        <>
          {hasPast && <PastField past={past} />}
          <Choice
            label="Range"
            value={range}
            options={Object.entries(RANGES).map(([id, { label }]) => [id, label])}
            onChange={(value) => setQuery({ range: value === "1h" ? undefined : value })}
          />
        </>
      }
    >
      {past && <PastFindings past={past} />}
      <Loaded resource={series} lines={6}>
        {(value) => (
          <div class="plots">
            {plots.map((plot) => (
              <OnePlot
                key={plot.title}
                plot={plot}
                series={value}
                marks={marks}
                span={past?.span}
                onTime={hasPast ? lookAt : undefined}
              />
            ))}
          </div>
        )}
      </Loaded>
      {children}
    </Section>
  );
}

interface OnePlotProps extends Pick<PlotProps, "marks" | "span" | "onTime"> {
  plot: PlotOf;
  series: Series;
}

function OnePlot({ plot: { title, lines, format }, series, ...rest }: OnePlotProps) {
  const drawn = useMemo<Line[]>(
    () =>
      lines.map(([metric, label, colour]) => ({
        label,
        colour,
        values: series.metrics.find((one) => one.metric === metric)?.values ?? [],
      })),
    [series],
  );
  return <LaterPlot title={title} times={series.times} lines={drawn} format={format} {...rest} />;
}

/** The start of the range, in unix seconds on a whole step. It moves on every `everyMs`. */
function useStart(seconds: number, step: number, everyMs: number): number {
  const start = () => Math.floor((nowMs() / 1000 - seconds) / step) * step;
  const [, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setRound((last) => last + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return start();
}

/** While the next range is on its way, the last one stays. */
function useSteadySeries(path: string, everyMs: number) {
  const series = useResource<Series>(path, { everyMs });
  const [last, setLast] = useState<Series>();
  useEffect(() => {
    if (series.value !== undefined) setLast(series.value);
  }, [series.value]);
  const value = series.value ?? last;
  return { ...series, value, isLoading: series.isLoading && value === undefined };
}
