/**
 * Puts guilty items back in a redrive. The good items of their batches keep their predictions, and are not run again.
 */
import type { Statements } from "../../database/database.ts";
import { failedItems, forgetFailedItems, partsOf, replaceParts } from "./isolated-rows.ts";
import { type BatchPart, reopenedParts } from "./search.ts";

/** Few: an error has up to 97 KiB. */
const ITEMS_AT_ONCE = 20;

export interface ReopenedBatch {
  batchIndex: number;
  /** With the guilty items that are tried again; adjacent ones together. */
  parts: BatchPart[];
  /** The first items of the failures that do not count any more. */
  firstItems: number[];
}

/** Those of the batches that were split. `isWanted`: by the error of an item, as JSON. */
export async function reopenedBatches(
  db: Statements,
  jobId: string,
  batches: readonly { batch_index: number }[],
  isWanted: (errorJson: string) => boolean,
): Promise<ReopenedBatch[]> {
  const reopened: ReopenedBatch[] = [];
  for (const { batch_index: batchIndex } of batches) {
    const parts = await partsOf(db, jobId, batchIndex);
    if (parts.length === 0) continue;
    const firstItems = await wantedItems(db, jobId, batchIndex, isWanted);
    const wanted = new Set(firstItems);
    reopened.push({
      ...{ batchIndex, firstItems },
      parts: reopenedParts(parts, ({ first }) => wanted.has(first)),
    });
  }
  return reopened;
}

async function wantedItems(
  db: Statements,
  jobId: string,
  batchIndex: number,
  isWanted: (errorJson: string) => boolean,
): Promise<number[]> {
  const wanted: number[] = [];
  for (let last = -1; ; ) {
    const rows = await failedItems(db, jobId, batchIndex, last, ITEMS_AT_ONCE);
    for (const { first_item, error_json } of rows) if (isWanted(error_json)) wanted.push(first_item);
    if (rows.length < ITEMS_AT_ONCE) return wanted;
    last = rows.at(-1)!.first_item;
  }
}

export async function reopen(
  tx: Statements,
  jobId: string,
  { batchIndex, parts, firstItems }: ReopenedBatch,
): Promise<void> {
  await replaceParts(tx, jobId, batchIndex, parts);
  await forgetFailedItems(tx, jobId, batchIndex, firstItems);
}
