/** A plot of series over time (uPlot). Its colours follow the theme; a table with the same numbers is a button away. */
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { nowMs } from "../format/now.ts";
import { localDay, localMinute, localTime } from "../format/times.ts";
import { Scroll } from "../parts/scroll.tsx";
import { theme } from "../session/theme.ts";
import { clicks, linesAt, markOf, tooltip } from "./plot-plugins.ts";

export interface Line {
  label: string;
  values: readonly (number | null)[];
  /** The name of a colour in the styles: `--busy`. */
  colour: string;
}

export interface Mark {
  timeS: number;
  label: string;
  colour: string;
}

export interface PlotProps {
  title: string;
  /** Unix seconds. */
  times: readonly number[];
  lines: readonly Line[];
  /** A value as text, also on the axis. */
  format: (value: number) => string;
  /** What happened, as lines across the plot. */
  marks?: readonly Mark[] | undefined;
  /** What is marked, in Unix seconds. */
  span?: { fromS: number; toS: number } | undefined;
  /** A click on a time, in milliseconds. */
  onTime?: ((timeMs: number) => void) | undefined;
}

const HEIGHT = 160;
const NO_MARKS: readonly Mark[] = [];
const TABLE_ROWS_MAX = 200;

export function Plot({ title, times, lines, format, marks, span, onTime }: PlotProps) {
  const [isTable, setTable] = useState(false);
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null));
  return (
    <figure class="plot">
      <figcaption>
        <span>{title}</span>
        <span class="legend">
          {lines.map(({ label, colour }) => (
            <span key={label} class={`key ${colour}`}>
              {label}
            </span>
          ))}
        </span>
        <button type="button" class="plain small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? "Plot" : "Numbers"}
        </button>
      </figcaption>
      {isTable ? (
        <Numbers times={times} lines={lines} format={format} />
      ) : isEmpty ? (
        <div class="plot-area quiet">nothing was measured in this time</div>
      ) : (
        <Canvas {...{ title, times, lines, format, marks, span, onTime }} />
      )}
    </figure>
  );
}

function Canvas({ title, times, lines, format, marks = NO_MARKS, span, onTime }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const marked = useRef(span);
  marked.current = span;
  const happened = useRef(marks);
  happened.current = marks;
  const isDark = theme.value;
  const shape = lines.map(({ label, colour }) => label + colour).join();
  useEffect(() => {
    const element = box.current!;
    const colourOf = (name: string) => getComputedStyle(element).getPropertyValue(`--${name}`).trim();
    plot.current = new UPlot(
      optionsFor({ lines, format, width: element.clientWidth, colourOf, marked, happened, onTime }),
      [[...times], ...lines.map(({ values }) => [...values])] as UPlot.AlignedData,
      element,
    );
    const watch = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape, isDark]);
  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])] as UPlot.AlignedData);
  }, [times, lines]);
  useEffect(() => plot.current?.redraw(false), [span?.fromS, span?.toS, marks]);
  return <div class="plot-area" ref={box} role="img" aria-label={`${title}: ${summaryOf(lines, format)}`} />;
}

/** What the plot says, for those who cannot see it: the last known value of each line. */
function summaryOf(lines: readonly Line[], format: (value: number) => string): string {
  return lines
    .map(({ label, values }) => {
      const last = values.findLast((value) => value !== null);
      return `${label} ${last === undefined || last === null ? "unknown" : format(last)}`;
    })
    .join(", ");
}

interface OptionsNeed {
  lines: readonly Line[];
  format: (value: number) => string;
  width: number;
  colourOf: (name: string) => string;
  marked: { readonly current: PlotProps["span"] };
  happened: { readonly current: readonly Mark[] };
  onTime: PlotProps["onTime"];
}

function optionsFor({
  lines,
  format,
  width,
  colourOf,
  marked,
  happened,
  onTime,
}: OptionsNeed): UPlot.Options {
  const axis = {
    stroke: colourOf("quiet"),
    grid: { stroke: colourOf("line"), width: 1 },
    ticks: { show: false },
  };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 5 } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [
      { ...axis, font, size: 28, values: (_, splits) => splits.map(tickTime) },
      { ...axis, font, size: 56, values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label, colour }) => ({
        label,
        stroke: colourOf(colour),
        width: 1.5,
        // A line needs two values beside each other: others are points.
        points: { size: 5, filter: (plot: UPlot, at: number) => alone(plot.data[at]!) },
        spanGaps: false,
      })),
    ],
    plugins: [
      tooltip(format, lines, happened),
      markOf(marked, colourOf),
      linesAt(happened, colourOf),
      ...(onTime ? [clicks(onTime)] : []),
    ],
  };
}

/** The positions of values that have no neighbour. */
function alone(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (at: number) => values[at] !== null && values[at] !== undefined;
  const positions = Array.from({ length: values.length }, (_, at) => at);
  return positions.filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1));
}

function tickTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  return isMidnight ? localDay(date.getTime()) : localMinute(date.getTime());
}

function Numbers({ times, lines, format }: Omit<PlotProps, "title">) {
  const rows = times
    .map((time, at) => ({ time, at }))
    .slice(-TABLE_ROWS_MAX)
    .reverse();
  return (
    <Scroll label="numbers of the plot" class="plot-area">
      <table>
        <thead>
          <tr>
            <th>time</th>
            {lines.map(({ label }) => (
              <th key={label} class="number">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, at }) => (
            <tr key={time}>
              <td>{localTime(new Date(time * 1000).toISOString(), nowMs())}</td>
              {lines.map(({ label, values }) => (
                <td key={label} class="number">
                  {values[at] === null || values[at] === undefined ? "–" : format(values[at])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
