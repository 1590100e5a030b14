/**
 * Pure: the counts of each step of a window. A step without a row counts 0, unless it is not known: before the subject
 * or the series began, before the first row that is kept, and in the future.
 */
import { keptFrom, startOf, timesOf, type Window } from "./steps.ts";

/** Counts by column, of rows that begin at `start_s`. */
export type CountRow = { start_s: number } & Record<string, number>;

export class CountedSteps {
  private readonly window: Window;
  private readonly nowS: number;
  private readonly firstS: number;
  private readonly sums = new Map<number, CountRow>();

  constructor(window: Window, { knownFromS, nowS }: { knownFromS: number; nowS: number }) {
    this.window = window;
    this.nowS = nowS;
    this.firstS = startOf(Math.max(knownFromS, keptFrom(window.stepS, nowS)), window.stepS);
  }

  add(rows: readonly CountRow[]): void {
    for (const row of rows) {
      const startS = startOf(row.start_s, this.window.stepS);
      const known = this.sums.get(startS);
      this.sums.set(startS, known === undefined ? row : together(known, row));
    }
  }

  /** `read` gets the counts of each known step. The others are null. */
  each(read: (sum: (name: string) => number, startS: number) => number | null): (number | null)[] {
    return timesOf(this.window).map((startS) => {
      if (startS < this.firstS || startS > this.nowS) return null;
      const sums = this.sums.get(startS);
      return read((name) => sums?.[name] ?? 0, startS);
    });
  }

  /** Per second. Of the step in progress over the time since its start, and over `leastS` at least. */
  rates(name: string, leastS: number): (number | null)[] {
    return this.each((sum, startS) => {
      const overS = Math.max(leastS, Math.min(this.window.stepS, this.nowS - startS));
      return sum(name) / overS;
    });
  }

  total(name: string): number {
    return this.each((sum) => sum(name)).reduce<number>((total, count) => total + (count ?? 0), 0);
  }
}

function together(one: CountRow, other: CountRow): CountRow {
  const sums: CountRow = { ...one };
  for (const [name, count] of Object.entries(other))
    if (name !== "start_s") sums[name] = (sums[name] ?? 0) + count;
  return sums;
}
