/** Tables, ages and durations in Cortex's format. */
import { wallMs } from "../../base/clock.ts";
import { printableLine } from "../../base/printable.ts";

/**
 * Pads columns, with three spaces between. A column whose head ends in `*` is left out if all its cells are empty or 0.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const shown = head.map(
    (title, column) => !title.endsWith("*") || rows.some((row) => row[column] !== "" && row[column] !== "0"),
  );
  const cells = [head.map((title) => title.replace(/\*$/, "")), ...rows].map((row) =>
    row.filter((_, column) => shown[column]).map(printableLine),
  );
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("   ")
        .trimEnd(),
    )
    .join("\n");
}

/** `17s`, `5m3s`, `2h10m`, `3d15h`. */
export function age(milliseconds: number): string {
  const s = Math.max(0, Math.floor(milliseconds / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60}s`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h${Math.floor((s % 3600) / 60)}m`;
  return `${Math.floor(s / 86_400)}d${Math.floor((s % 86_400) / 3600)}h`;
}

export function since(timestamp: string, nowMs = wallMs()): string {
  return age(nowMs - Date.parse(timestamp));
}

/** `1.5 GiB`, with three digits. */
export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${units[power]}`;
}

/** `02 Jan 06 15:04:05 UTC`; `-` if there is no time. */
export function dateTime(timestamp: string | undefined): string {
  if (timestamp === undefined) return "-";
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) ([\d:]+)/.exec(
    new Date(timestamp).toUTCString(),
  )!;
  return `${day} ${month} ${year!.slice(2)} ${time} UTC`;
}

const CELL_WIDTH = 60;

/** A text in one table line, shortened if it is too long. */
export function cell(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length <= CELL_WIDTH ? line : `${line.slice(0, CELL_WIDTH - 1)}…`;
}
