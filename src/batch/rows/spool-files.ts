/** Which files of the spool are still needed: those with rows of a batch that is in no part yet. */

import type { RowsIndex } from "./rows-by-batch.ts";
import type { RowsPlace } from "./rows-place.ts";
import type { Spool } from "./spool.ts";

const ENTRIES_A_PAGE = 4096;

export class SpoolFiles {
  private readonly spool: Spool;
  /** The last batch with rows in each file. */
  private readonly lastBatch = new Map<number, number>();
  private firstNew = 0;

  constructor(spool: Spool) {
    this.spool = spool;
  }

  /**
   * At a start: finds the files that settled batches need, and removes the others. `firstNew`: the first batch that is
   * in no part yet. The rows of a batch before it were computed in a later round: they stay until its part is
   * rewritten, at the end. `isSettled`: the index may have entries of batches that were never committed.
   */
  async begin(
    index: RowsIndex,
    { firstNew, totalBatches }: { firstNew: number; totalBatches: number },
    isSettled: (batchIndex: number) => boolean,
  ): Promise<void> {
    this.firstNew = firstNew;
    const files = await this.spool.files();
    const known = new Set(files);
    for (let from = 0; from < totalBatches && files.length > 0; from += ENTRIES_A_PAGE) {
      const places = await index.read(from, Math.min(ENTRIES_A_PAGE, totalBatches - from));
      for (const [i, place] of places.entries())
        if (known.has(place.file) && isSettled(from + i)) this.has(from + i, place);
    }
    for (const file of files) if (!this.lastBatch.has(file)) await this.spool.remove(file);
  }

  /** A batch's rows are in this place. */
  has(batchIndex: number, { file, bytes }: RowsPlace): void {
    const last = batchIndex < this.firstNew ? Number.POSITIVE_INFINITY : batchIndex;
    if (bytes > 0) this.lastBatch.set(file, Math.max(last, this.lastBatch.get(file) ?? -1));
  }

  /** This file stays as long as the job's data. */
  keep(file: number): void {
    this.lastBatch.set(file, Number.POSITIVE_INFINITY);
  }

  /** The batches before this one are in parts. A file that a worker still writes stays. */
  async removeBefore(batchIndex: number): Promise<void> {
    for (const [file, last] of this.lastBatch) {
      if (last >= batchIndex || this.spool.isWriting(file)) continue;
      this.lastBatch.delete(file);
      await this.spool.remove(file);
    }
  }
}
