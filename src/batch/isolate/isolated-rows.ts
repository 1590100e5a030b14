/**
 * The rows of batches that are split: what is known of their parts, and the failures of guilty items. They are written
 * in the commit that counts the attempt.
 */
import type { Statements } from "../../database/database.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { errorGroup, type FailedAttempt } from "../records/batch-rows.ts";
import { FAILURE_TURNS } from "../records/failed-batches.ts";
import { NO_ROWS } from "../rows/rows-place.ts";
import type { ItemSource } from "./item-source.ts";
import type { BatchPart, PartState } from "./search.ts";

const STATES: readonly PartState[] = ["open", "good", "guilty"];

/** The failure of a guilty part. */
export interface FailedItems {
  first: number;
  next: number;
  /** Failed calls of `predict()` that had them. */
  attempts: number;
  cause: FailedAttempt["cause"];
  fault: WorkerFault;
  /** Its error group, if `fault` may have been cut since. */
  group?: string;
  source: ItemSource | undefined;
}

/** Few: an error has up to 97 KiB. */
const ITEMS_AT_ONCE = 20;
/** Rows that one statement writes or removes: the parts of a batch may be thousands, in one commit. */
const ROWS_A_STATEMENT = 100;

/** Each part replaces the one with its first item. */
export async function saveParts(
  tx: Statements,
  jobId: string,
  batchIndex: number,
  parts: readonly BatchPart[],
): Promise<void> {
  for (let at = 0; at < parts.length; at += ROWS_A_STATEMENT) {
    const some = parts.slice(at, at + ROWS_A_STATEMENT);
    await tx.run(
      `INSERT INTO batch_parts (job_id, batch_index, first_item, next_item, state, attempts, file, position, bytes,
         row_count) VALUES ${some.map(() => "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}
       ON CONFLICT (job_id, batch_index, first_item) DO UPDATE SET next_item = excluded.next_item,
         state = excluded.state, attempts = excluded.attempts, file = excluded.file, position = excluded.position,
         bytes = excluded.bytes, row_count = excluded.row_count`,
      some.flatMap(({ first, next, state, attempts, place = NO_ROWS }) => [
        ...[jobId, batchIndex, first, next, STATES.indexOf(state), attempts],
        ...[place.file, place.offset, place.bytes, place.rows],
      ]),
    );
  }
}

/** Puts these parts in place of all of the batch. */
export async function replaceParts(
  tx: Statements,
  jobId: string,
  batchIndex: number,
  parts: readonly BatchPart[],
): Promise<void> {
  await tx.run("DELETE FROM batch_parts WHERE job_id = ? AND batch_index = ?", [jobId, batchIndex]);
  await saveParts(tx, jobId, batchIndex, parts);
}

/** The parts of a batch, in order; empty if it was never split. */
export async function partsOf(db: Statements, jobId: string, batchIndex: number): Promise<BatchPart[]> {
  const rows = await db.all<Record<"first" | "next" | "state" | "attempts", number> & PlaceRow>(
    `SELECT first_item AS first, next_item AS next, state, attempts, file, position, bytes, row_count
     FROM batch_parts WHERE job_id = ? AND batch_index = ? ORDER BY first_item`,
    [jobId, batchIndex],
  );
  return rows.map(({ first, next, state, attempts, ...place }) => ({
    ...{ first, next, state: STATES[state]!, attempts },
    place: placeOf(place),
  }));
}

interface PlaceRow {
  file: number;
  position: number;
  bytes: number;
  row_count: number;
}

function placeOf({ file, position, bytes, row_count }: PlaceRow): BatchPart["place"] {
  return file === 0 ? undefined : { file, offset: position, bytes, rows: row_count };
}

/** The batches from `first` to the one before `next` that have parts to try, in order. */
export async function openBatches(
  db: Statements,
  jobId: string,
  first: number,
  next: number,
): Promise<number[]> {
  const rows = await db.all<{ batch_index: number }>(
    `SELECT DISTINCT batch_index FROM batch_parts
     WHERE job_id = ? AND state = 0 AND batch_index >= ? AND batch_index < ? ORDER BY batch_index`,
    [jobId, first, next],
  );
  return rows.map(({ batch_index }) => batch_index);
}

export async function saveFailedItems(
  tx: Statements,
  jobId: string,
  round: number,
  batchIndex: number,
  { first, next, attempts, cause, fault, group = errorGroup(fault), source }: FailedItems,
): Promise<void> {
  await tx.run(
    `INSERT INTO failed_items (job_id, batch_index, first_item, next_item, round, attempts, by_death, by_oom,
       source_path, source_line, error_group, error_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[
        jobId,
        batchIndex,
        first,
        next,
        round,
        attempts,
        cause === "death" ? 1 : 0,
        cause === "oom" ? 1 : 0,
      ],
      ...[source?.path ?? null, source?.line ?? null, group, JSON.stringify(fault)],
    ],
  );
}

/**
 * The batch has finally failed because of its guilty items. Its row has the failure that decides how the job ends: of
 * an item that ran out of memory, else of one whose worker died, else of the first.
 */
export async function failSplitBatch(
  tx: Statements,
  jobId: string,
  round: number,
  batchIndex: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO batches (job_id, batch_index, round, attempts, failed, by_death, by_oom, error_json, error_group)
     SELECT job_id, batch_index, CAST(? AS BIGINT), attempts, 1, by_death, by_oom, error_json, error_group
     FROM failed_items WHERE job_id = ? AND batch_index = ? ORDER BY by_oom DESC, by_death DESC, first_item LIMIT 1
     ON CONFLICT (job_id, batch_index) DO UPDATE SET round = excluded.round, failed = 1, by_death = excluded.by_death,
       by_oom = excluded.by_oom, error_json = excluded.error_json, error_group = excluded.error_group, in_hand = 0`,
    [round, jobId, batchIndex],
  );
}

export interface FailedItemsRow {
  first_item: number;
  next_item: number;
  attempts: number;
  source_path: string | null;
  source_line: number | null;
  letter_error: string | null;
  error_json: string;
}

/** The next guilty items of a batch after item `after`, in order. */
export function failedItems(
  db: Statements,
  jobId: string,
  batchIndex: number,
  after: number,
  limit: number,
): Promise<FailedItemsRow[]> {
  return db.all<FailedItemsRow>(
    `SELECT first_item, next_item, attempts, source_path, source_line, letter_error, error_json FROM failed_items
     WHERE job_id = ? AND batch_index = ? AND first_item > ? ORDER BY first_item LIMIT ?`,
    [jobId, batchIndex, after, limit],
  );
}

/** All guilty items of a batch after item `after`, in order. */
export async function* eachFailedItem(
  db: Statements,
  jobId: string,
  batchIndex: number,
  after = -1,
): AsyncGenerator<FailedItemsRow> {
  for (let last = after; ; ) {
    await FAILURE_TURNS.turn();
    const rows = await failedItems(db, jobId, batchIndex, last, ITEMS_AT_ONCE);
    yield* rows;
    if (rows.length < ITEMS_AT_ONCE) return;
    last = rows.at(-1)!.first_item;
  }
}

/** The failures of these items do not count any more: they are tried again. */
export async function forgetFailedItems(
  tx: Statements,
  jobId: string,
  batchIndex: number,
  firstItems: readonly number[],
): Promise<void> {
  for (let at = 0; at < firstItems.length; at += ROWS_A_STATEMENT) {
    const some = firstItems.slice(at, at + ROWS_A_STATEMENT);
    await tx.run(
      `DELETE FROM failed_items WHERE job_id = ? AND batch_index = ? AND first_item IN (${some.map(() => "?").join(", ")})`,
      [jobId, batchIndex, ...some],
    );
  }
}
