/** What attempts of parts have changed since the last commit of a job. The commit that counts them has it all. */
import type { Statements } from "../../database/database.ts";
import { rowBytes } from "../records/batch-rows.ts";
import { NO_ROWS, type RowsPlace, type SettledRows } from "../rows/rows-place.ts";
import {
  type FailedItems,
  failSplitBatch,
  replaceParts,
  saveFailedItems,
  saveParts,
} from "./isolated-rows.ts";
import { type BatchPart, settledParts } from "./search.ts";

/** Joins the rows of a batch's good parts, in order; `isKept`: until the job's data is removed. */
export type JoinRows = (pieces: readonly RowsPlace[], isKept: boolean) => Promise<RowsPlace>;

interface SplitBatch {
  batchIndex: number;
  parts: readonly BatchPart[];
  hasFailed: boolean;
  /** Of all its rows, once they are joined; undefined if the job has no output. */
  place?: RowsPlace;
}

export class IsolatedOutcomes {
  /** Failed calls of parts. */
  failedAttempts = 0;
  private readonly changed: {
    batchIndex: number;
    parts: readonly BatchPart[];
    failed?: FailedItems | undefined;
  }[] = [];
  private readonly settled: SplitBatch[] = [];

  get isEmpty(): boolean {
    return this.changed.length === 0;
  }

  /** About how many bytes the guilty items take in the database. */
  get failedBytes(): number {
    return this.changed.reduce(
      (sum, { failed }) => sum + (failed === undefined ? 0 : rowBytes(failed.fault)),
      0,
    );
  }

  /** Batches whose search has ended, with guilty items or without. */
  count(hasFailed: boolean): number {
    return this.settled.filter((batch) => batch.hasFailed === hasFailed).length;
  }

  /** `parts`: those that changed; `failed`: the failure of a part that is guilty now. */
  change(batchIndex: number, parts: readonly BatchPart[], failed?: FailedItems): void {
    this.changed.push({ batchIndex, parts: [...parts], failed });
  }

  /** The search of a batch has ended; `parts`: all of them. */
  settle(batchIndex: number, parts: readonly BatchPart[]): void {
    const hasFailed = parts.some(({ state }) => state === "guilty");
    this.settled.push({ batchIndex, parts, hasFailed });
  }

  /** Joins the rows of the batches whose search has ended: one place each, as all batches have. */
  async joinRows(join: JoinRows): Promise<SettledRows[]> {
    const joined: SettledRows[] = [];
    for (const batch of this.settled) {
      const pieces = batch.parts.flatMap(({ place }) => (place === undefined ? [] : [place]));
      batch.place = pieces.length === 0 ? NO_ROWS : await join(pieces, batch.hasFailed);
      joined.push({ batchIndex: batch.batchIndex, place: batch.place });
    }
    return joined;
  }

  async save(tx: Statements, jobId: string, round: number): Promise<void> {
    for (const { batchIndex, parts, failed } of this.changed) {
      await saveParts(tx, jobId, batchIndex, parts);
      if (failed !== undefined) await saveFailedItems(tx, jobId, round, batchIndex, failed);
    }
    for (const { batchIndex, parts, hasFailed, place } of this.settled) {
      // The parts of a batch without guilty items are of no further use.
      await replaceParts(tx, jobId, batchIndex, hasFailed ? settledParts(parts, place) : []);
      if (hasFailed) await failSplitBatch(tx, jobId, round, batchIndex);
    }
  }
}
