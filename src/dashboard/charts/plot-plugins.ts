/** What uPlot does not bring: the values under the pointer, a mark of a time, and clicks. */
import type UPlot from "uplot";
import { nowMs } from "../format/now.ts";
import { localTime } from "../format/times.ts";
import type { Line, PlotProps } from "./plot.tsx";

/** The time that is looked at, at least two pixels wide. */
export function markOf(
  marked: { readonly current: PlotProps["span"] },
  colourOf: (name: string) => string,
): UPlot.Plugin {
  return {
    hooks: {
      drawAxes: ({ ctx, bbox, valToPos }) => {
        const span = marked.current;
        if (span === undefined) return;
        const [from, to] = [span.fromS, span.toS].map((timeS) =>
          Math.min(bbox.left + bbox.width, Math.max(bbox.left, valToPos(timeS, "x", true))),
        );
        ctx.save();
        ctx.globalAlpha = 0.2;
        ctx.fillStyle = colourOf("warn");
        ctx.fillRect(from!, bbox.top, Math.max(2 * devicePixelRatio, to! - from!), bbox.height);
        ctx.restore();
      },
    },
  };
}

/** A click tells its time. */
export function clicks(onTime: (timeMs: number) => void): UPlot.Plugin {
  return {
    hooks: {
      init: (plot) => {
        plot.over.style.cursor = "pointer";
        plot.over.addEventListener("click", () => {
          const { idx } = plot.cursor;
          if (idx !== null && idx !== undefined) onTime(plot.data[0][idx]! * 1000);
        });
      },
    },
  };
}

/** The values under the pointer. */
export function tooltip(format: (value: number) => string, lines: readonly Line[]): UPlot.Plugin {
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
