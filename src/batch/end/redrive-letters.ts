/**
 * Puts back what messages of dead letter queues are about: failed batches, or guilty items of split ones. What a call
 * that was interrupted has put back counts as put back. What has succeeded since is not run again.
 */
import type { Database, Statements } from "../../database/database.ts";
import {
  findSegment,
  isSettled as isBatchSettled,
  type SegmentProgress,
} from "../../database/segment-rows.ts";
import { eachFailedItem } from "../isolate/isolated-rows.ts";
import { isReopened, reopenedBatches } from "../isolate/reopen-batches.ts";
import { deleteLetters } from "../letters/letters.ts";
import { failedAmong } from "../records/failed-batches.ts";
import type { JobRow } from "../records/job-rows.ts";
import { putBack, wrongState } from "./put-back.ts";

/** Few: each writes its segment. Of a job that isolates, one: a batch may have thousands of parts. */
const BATCHES_A_PIECE = 20;
const SPLIT_BATCHES_A_PIECE = 1;
/** Messages of up to 256 KiB that one statement deletes. */
const REMOVED_AT_ONCE = 50;

export interface LetterOfJob {
  message_id: string;
  batch_index: number;
  /** The first of its items, if it is not about a whole batch. */
  first_item: number | null;
}

export interface RedrivenLetters {
  /** The messages whose batches or items are put back. */
  taken: string[];
  /** The others, with the reason why they stay. */
  skipped: { id: string; reason: string }[];
}

const SUCCEEDED = "its items have succeeded since";
const RUNS_ALREADY = "another part of its batch is to run again; redrive it after that";

/** Of one ended job. Throws `wrong_state` if a new round would run batches that are in none of the messages. */
export async function putBackLetters(
  db: Database,
  job: JobRow,
  letters: readonly LetterOfJob[],
): Promise<RedrivenLetters> {
  const byBatch = groupedByBatch(letters);
  const batches = [...byBatch.keys()].sort((a, b) => a - b);
  const unsettled = await unsettledAmong(db, job.job_id, batches);
  assertNoOthers(job, unsettled.size);
  const result: RedrivenLetters = { taken: [], skipped: [] };
  const atOnce = job.isolates === 1 ? SPLIT_BATCHES_A_PIECE : BATCHES_A_PIECE;
  for (let at = 0; at < batches.length; at += atOnce) {
    const some = batches.slice(at, at + atOnce);
    const failed = await failedAmong(db, job.job_id, some);
    await putBackFailed(
      db,
      job,
      some.filter((batch) => failed.has(batch)),
      { byBatch, result },
    );
    for (const batch of some) {
      if (failed.has(batch)) continue;
      const open = unsettled.has(batch);
      const guilty = open ? await guiltyItems(db, job.job_id, batch) : new Set<number>();
      for (const letter of byBatch.get(batch)!) sortOut(letter, open, guilty, result);
    }
  }
  return result;
}

function groupedByBatch(letters: readonly LetterOfJob[]): Map<number, LetterOfJob[]> {
  const byBatch = new Map<number, LetterOfJob[]>();
  for (const letter of letters) {
    const known = byBatch.get(letter.batch_index);
    if (known === undefined) byBatch.set(letter.batch_index, [letter]);
    else known.push(letter);
  }
  return byBatch;
}

/** Batches that were never settled would run too: somebody must want that. */
function assertNoOthers(job: JobRow, known: number): void {
  const { total_batch_count: total, succeeded, failed_batches } = job;
  if (total !== null && total - succeeded - failed_batches <= known) return;
  const resume = `quern job resume ${job.api_name} ${job.job_id}`;
  throw wrongState(job, `it ended before all its batches were settled; resume it first (\`${resume}\`)`);
}

/** A message about a batch that has not failed now. */
function sortOut(
  { message_id: id, first_item }: LetterOfJob,
  isOpen: boolean,
  guilty: ReadonlySet<number>,
  { taken, skipped }: RedrivenLetters,
): void {
  if (!isOpen) skipped.push({ id, reason: SUCCEEDED });
  else if (first_item !== null && guilty.has(first_item)) skipped.push({ id, reason: RUNS_ALREADY });
  else taken.push(id);
}

async function putBackFailed(
  db: Database,
  { job_id: jobId, isolates }: JobRow,
  batches: readonly number[],
  { byBatch, result }: { byBatch: ReadonlyMap<number, readonly LetterOfJob[]>; result: RedrivenLetters },
): Promise<void> {
  if (batches.length === 0) return;
  const isWanted = async (_: string, item: number, batch: number) =>
    byBatch.get(batch)!.some(({ first_item }) => first_item === null || first_item === item);
  const rows = batches.map((batch_index) => ({ batch_index }));
  const split = isolates === 1 ? await reopenedBatches(db, jobId, rows, isWanted) : [];
  const splitItems = new Map(split.map(({ batchIndex, firstItems }) => [batchIndex, new Set(firstItems)]));
  const opened = split.filter(isReopened);
  const isOpened = (batch: number) =>
    !splitItems.has(batch) || opened.some(({ batchIndex }) => batchIndex === batch);
  for (const batch of batches) {
    const items = splitItems.get(batch);
    for (const { message_id: id, first_item } of byBatch.get(batch)!) {
      const isTaken =
        isOpened(batch) && (items === undefined || first_item === null || items.has(first_item));
      if (isTaken) result.taken.push(id);
      else result.skipped.push({ id, reason: SUCCEEDED });
    }
  }
  const back = batches.filter(isOpened);
  if (back.length > 0) await putBack(db, jobId, back, opened);
}

/** Which of these batches, in order, are not settled. */
async function unsettledAmong(db: Database, jobId: string, batches: readonly number[]): Promise<Set<number>> {
  const unsettled = new Set<number>();
  let segment: SegmentProgress | undefined;
  for (const batch of batches) {
    if (segment === undefined || batch >= segment.first_batch + segment.batch_count)
      segment = await findSegment(db, jobId, batch);
    if (segment !== undefined && !isBatchSettled(segment, batch)) unsettled.add(batch);
  }
  return unsettled;
}

async function guiltyItems(db: Statements, jobId: string, batch: number): Promise<Set<number>> {
  const items = new Set<number>();
  for await (const { first_item } of eachFailedItem(db, jobId, batch)) items.add(first_item);
  return items;
}

/** In the transaction that begins the round; others have the event loop between two statements. */
export async function removeTaken(tx: Statements, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += REMOVED_AT_ONCE) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    await deleteLetters(tx, ids.slice(at, at + REMOVED_AT_ONCE));
  }
}
