/** Joins the rows of batches that lie behind each other, so that one read has those of many: pure. */
import type { RowsPlace } from "./rows-place.ts";

/** Rows of several batches in one file. */
export interface RowsRun extends RowsPlace {
  firstBatch: number;
  /** The batch after the last one. Those between them without rows have failed. */
  nextBatch: number;
  /** How many batches have rows in it. */
  batches: number;
}

/** `places`: of the batches from `firstBatch` on. */
export function adjacentRuns(places: readonly RowsPlace[], firstBatch: number): RowsRun[] {
  const runs: RowsRun[] = [];
  for (const [i, place] of places.entries()) {
    if (place.bytes === 0) continue;
    const batch = firstBatch + i;
    const last = runs[runs.length - 1];
    if (last !== undefined && last.file === place.file && last.offset + last.bytes === place.offset) {
      last.bytes += place.bytes;
      last.rows += place.rows;
      last.nextBatch = batch + 1;
      last.batches++;
    } else {
      runs.push({ ...place, firstBatch: batch, nextBatch: batch + 1, batches: 1 });
    }
  }
  return runs;
}
