/**
 * Puts guilty items back in a redrive. The good items of their batches keep their predictions, and are not run again.
 *
 * A batch may have thousands of failures of up to 97 KiB, which go in many commits. The first one opens the parts, so
 * that after a kill the next redrive knows of each failure whether it still counts.
 */
import type { Database, Statements } from "../../database/database.ts";
import { eachFailedItem, forgetFailedItems, partsOf, replaceParts } from "./isolated-rows.ts";
import { type BatchPart, reopenedParts } from "./search.ts";

/** Failures of items that one commit deletes: some 10 ms with errors of 32 KiB. */
const FORGOTTEN_A_COMMIT = 100;

export interface ReopenedBatch {
  batchIndex: number;
  /** With the guilty items that are tried again; adjacent ones together. */
  parts: BatchPart[];
  /** The first items of the failures that do not count any more. After a kill there may be none left. */
  firstItems: number[];
}

/** Whether a failure is tried again: by its error as JSON, and its first item. */
export type IsWanted = (errorJson: string, firstItem: number, batchIndex: number) => Promise<boolean>;

/** Those of the batches that were split. */
export async function reopenedBatches(
  db: Statements,
  jobId: string,
  batches: readonly { batch_index: number }[],
  isWanted: IsWanted,
): Promise<ReopenedBatch[]> {
  const reopened: ReopenedBatch[] = [];
  for (const { batch_index: batchIndex } of batches) {
    const parts = await partsOf(db, jobId, batchIndex);
    if (parts.length === 0) continue;
    const begun = parts.filter(({ state }) => state === "open");
    const firstItems = await wantedItems(db, jobId, batchIndex, begun, isWanted);
    const wanted = new Set(firstItems);
    const opened = reopenedParts(parts, ({ first }) => wanted.has(first));
    reopened.push({ batchIndex, firstItems, parts: opened });
  }
  return reopened;
}

/** Whether any of the batch's items are tried again. */
export function isReopened({ parts }: ReopenedBatch): boolean {
  return parts.some(({ state }) => state === "open");
}

/** Those that `isWanted`, and those that a redrive had opened when it was killed. */
async function wantedItems(
  db: Statements,
  jobId: string,
  batchIndex: number,
  begun: readonly BatchPart[],
  isWanted: IsWanted,
): Promise<number[]> {
  const isBegun = (item: number) => begun.some(({ first, next }) => item >= first && item < next);
  const wanted: number[] = [];
  for await (const { first_item, error_json } of eachFailedItem(db, jobId, batchIndex))
    if (isBegun(first_item) || (await isWanted(error_json, first_item, batchIndex))) wanted.push(first_item);
  return wanted;
}

/** Commit by commit. `assertMayGoOn` is called in each. The batch itself is failed until the caller puts it back. */
export async function reopen(
  db: Database,
  jobId: string,
  { batchIndex, parts, firstItems }: ReopenedBatch,
  assertMayGoOn: (tx: Statements) => Promise<unknown>,
): Promise<void> {
  await db.transaction(async (tx) => {
    await assertMayGoOn(tx);
    await replaceParts(tx, jobId, batchIndex, parts);
  });
  for (let at = 0; at < firstItems.length; at += FORGOTTEN_A_COMMIT) {
    const some = firstItems.slice(at, at + FORGOTTEN_A_COMMIT);
    await db.transaction(async (tx) => {
      await assertMayGoOn(tx);
      await forgetFailedItems(tx, jobId, batchIndex, some);
    });
  }
}
