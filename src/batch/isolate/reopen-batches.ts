/**
 * Puts guilty items back in a redrive. The good items of their batches keep their predictions, and are not run again.
 */
import type { Statements } from "../../database/database.ts";
import { eachFailedItem, forgetFailedItems, partsOf, replaceParts } from "./isolated-rows.ts";
import { type BatchPart, reopenedParts } from "./search.ts";

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
  for await (const { first_item, error_json } of eachFailedItem(db, jobId, batchIndex))
    if (isWanted(error_json)) wanted.push(first_item);
  return wanted;
}

export async function reopen(
  tx: Statements,
  jobId: string,
  { batchIndex, parts, firstItems }: ReopenedBatch,
): Promise<void> {
  await replaceParts(tx, jobId, batchIndex, parts);
  await forgetFailedItems(tx, jobId, batchIndex, firstItems);
}
