/** What uPlot does not bring: the values under the pointer, a mark of a time, and clicks. */
import type UPlot from "uplot";
import { nowMs } from "../format/now.ts";
import { localTime } from "../format/times.ts";
import type { Line, Mark, PlotProps } from "./plot.tsx";

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

/** What happened: a dashed line across the plot, with a small triangle at its upper end. */
export function linesAt(
  happened: { readonly current: readonly Mark[] },
  colourOf: (name: string) => string,
): UPlot.Plugin {
  return {
    hooks: {
      draw: ({ ctx, bbox, data: [times], valToPos }) => {
        const { left, top, width, height } = bbox;
        const size = 4 * devicePixelRatio;
        // The axis ends where the step in progress begins: what happened in it is at the end.
        const lastS = times.at(-1) ?? 0;
        const stepS = lastS - (times.at(-2) ?? lastS);
        // The newest last, above the others.
        for (const { timeS, colour } of [...happened.current].reverse()) {
          const shownS = timeS < lastS + stepS ? Math.min(timeS, lastS) : timeS;
          // In the middle of a pixel, so that the line is sharp.
          const x = Math.floor(valToPos(shownS, "x", true)) + 0.5;
          if (x < left || x > left + width + 1) continue;
          drawMark(ctx, { x, top, bottom: top + height, size }, colourOf(colour));
        }
      },
    },
  };
}

interface MarkPlace {
  x: number;
  top: number;
  bottom: number;
  size: number;
}

function drawMark(ctx: CanvasRenderingContext2D, { x, top, bottom, size }: MarkPlace, colour: string): void {
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([size, size]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, bottom);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x - size, top);
  ctx.lineTo(x + size, top);
  ctx.lineTo(x, top + 1.5 * size);
  ctx.fill();
  ctx.restore();
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
export function tooltip(
  format: (value: number) => string,
  lines: readonly Line[],
  happened: { readonly current: readonly Mark[] },
): UPlot.Plugin {
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
        const [startS, nextS] = [plot.data[0][idx!]!, plot.data[0][idx! + 1] ?? Number.POSITIVE_INFINITY];
        const marks = happened.current.filter(({ timeS }) => timeS >= startS && timeS < nextS);
        const told = marks.map(({ label }) => label);
        note.textContent = [localTime(time, nowMs()), ...values, ...told].join("\n");
        const isRight = left > plot.over.clientWidth / 2;
        note.style.left = isRight ? "" : `${left + 12}px`;
        note.style.right = isRight ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}
