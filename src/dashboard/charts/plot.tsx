/** A plot of series over time (uPlot). Its colours follow the theme; a table with the same numbers is a button away. */
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { nowMs } from "../format/now.ts";
import { localTime } from "../format/times.ts";
import { Scroll } from "../parts/scroll.tsx";
import { theme } from "../session/theme.ts";

export interface Line {
  label: string;
  values: readonly (number | null)[];
  /** The name of a colour in the styles: `--busy`. */
  colour: string;
}

export interface PlotProps {
  title: string;
  /** Unix seconds. */
  times: readonly number[];
  lines: readonly Line[];
  /** A value as text, also on the axis. */
  format: (value: number) => string;
}

const HEIGHT = 160;
const TABLE_ROWS_MAX = 200;

export function Plot({ title, times, lines, format }: PlotProps) {
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
        <Canvas title={title} times={times} lines={lines} format={format} />
      )}
    </figure>
  );
}

function Canvas({ title, times, lines, format }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const isDark = theme.value;
  const shape = lines.map(({ label, colour }) => label + colour).join();
  useEffect(() => {
    const element = box.current!;
    const colourOf = (name: string) => getComputedStyle(element).getPropertyValue(`--${name}`).trim();
    plot.current = new UPlot(
      optionsFor({ lines, format, width: element.clientWidth, colourOf }),
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
}

function optionsFor({ lines, format, width, colourOf }: OptionsNeed): UPlot.Options {
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
    plugins: [tooltip(format, lines)],
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
  return isMidnight
    ? date.toLocaleDateString(undefined, { day: "numeric", month: "short" })
    : date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

/** The values under the pointer. */
function tooltip(format: (value: number) => string, lines: readonly Line[]): UPlot.Plugin {
  const note = document.createElement("div");
  note.className = "tooltip";
  note.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(note),
      setCursor: (plot) => {
        const { idx, left = 0 } = plot.cursor;
        note.hidden = idx === null || idx === undefined || left < 0;
        if (note.hidden) return;
        const time = new Date(plot.data[0][idx!]! * 1000).toISOString();
        const values = lines.map(({ label }, at) => {
          const value = plot.data[at + 1]![idx!];
          return `${label} ${value === null || value === undefined ? "–" : format(value)}`;
        });
        note.textContent = [localTime(time, nowMs()), ...values].join("\n");
        const isRight = left > plot.over.clientWidth / 2;
        note.style.left = isRight ? "" : `${left + 12}px`;
        note.style.right = isRight ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
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
