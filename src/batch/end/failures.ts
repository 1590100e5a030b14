/**
 * Reads what finally failed in a job: batches, and guilty items of batches that were split, each with its error and the
 * text of its items (docs/contract/jobs.md#failures).
 */
import type { Database } from "../../database/database.ts";
import { findWholeSegment } from "../../database/segment-rows.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { BatchItems } from "../dispatch/part-entries.ts";
import { type LoadedSegment, SegmentReader } from "../dispatch/segment-reader.ts";
import { eachFailedItem, type FailedItemsRow } from "../isolate/isolated-rows.ts";
import type { ItemSource } from "../isolate/item-source.ts";
import { batchId } from "../letters/letters.ts";
import { errorGroupOf, type FailedBatchRow, failedBatches } from "../records/failed-batches.ts";
import type { ItemsStore } from "../records/items-file.ts";
import { InputError, jobInput } from "../records/job-input.ts";
import type { JobRow } from "../records/job-rows.ts";
import { inputIfKept } from "../records/stored-input.ts";

export interface Failure {
  /** Stays the same when the batch runs again. */
  batch_id: string;
  batch_index: number;
  /** Of a batch that was split: the guilty item, and where it came from. The other fields are about it alone. */
  item_index?: number;
  /** If predict() did not return one value an item, these items could not be told apart. */
  item_count?: number;
  source?: ItemSource;
  /** In which it failed. */
  round: number;
  /** Attempts charged to it in that round. */
  receive_count: number;
  error: { type: string; message: string; traceback: string };
  /** The batch's JSON array, as its workers received it; undefined if the input can no longer be read. */
  payloadText: string | undefined;
  /** Why the dead letter queue does not have it. */
  letter_error?: string;
  /** Why there is no payload. */
  payload_error?: string;
}

/** Where a page begins: after this batch, or after this item of it. */
export interface FailureCursor {
  batch: number;
  item?: number | undefined;
}

export interface FailurePage {
  /** Read on demand: a page may hold many megabytes. */
  failures: AsyncGenerator<Failure>;
  /** Known once the last failure was read. */
  nextCursor: FailureCursor | null;
}

/** The sources that failed batches are read from. */
export interface FailureSource {
  db: Database;
  store: ObjectStore;
  items: ItemsStore;
}

/** Few: an error has up to 97 KiB. */
const ROWS_AT_ONCE = 20;

/** Which failures of a job a page has: at most `limit` after `after`, of those whose error is like that of a batch. */
export interface FailuresAsked {
  after: FailureCursor;
  limit: number;
  /** The batch's index. If it has not finally failed, no failure is like it. */
  like?: number | undefined;
}

/** In the order of batches and their items. */
export async function failurePage(
  source: FailureSource,
  job: JobRow,
  { after, limit, like }: FailuresAsked,
): Promise<FailurePage> {
  const input = await inputIfKept(source.db, job.job_id);
  const reader = new PayloadReader(source, job, input?.batch_size);
  async function* failures(): AsyncGenerator<Failure> {
    let [last, left] = [after, limit];
    try {
      for await (const { failure, cursor } of failuresAfter(source.db, job, after, { reader, like })) {
        if (left-- === 0) {
          page.nextCursor = last;
          return;
        }
        yield failure;
        last = cursor;
      }
    } finally {
      await reader.close();
    }
  }
  const page: FailurePage = { failures: failures(), nextCursor: null };
  return page;
}

/** Each with the cursor after it. */
async function* failuresAfter(
  db: Database,
  job: JobRow,
  { batch, item }: FailureCursor,
  { reader, like }: { reader: PayloadReader; like: number | undefined },
): AsyncGenerator<{ failure: Failure; cursor: FailureCursor }> {
  const group = like === undefined ? undefined : await errorGroupOf(db, job.job_id, like);
  if (like !== undefined && group === undefined) return;
  for (let [last, from] = [item === undefined ? batch : batch - 1, item ?? -1]; ; ) {
    const rows = await failedBatches(db, job.job_id, last, ROWS_AT_ONCE, group);
    if (rows.length === 0) return;
    for (const row of rows) {
      const { batch_index } = row;
      const after = batch_index === batch ? from : -1;
      const items = job.isolates === 1 ? eachFailedItem(db, job.job_id, batch_index, after) : NONE;
      let isSplit = after >= 0;
      for await (const failed of items) {
        isSplit = true;
        const cursor = { batch: batch_index, item: failed.first_item };
        yield { failure: await failureOfItems(job, row, failed, reader), cursor };
      }
      if (!isSplit) yield { failure: await failureOfBatch(job, row, reader), cursor: { batch: batch_index } };
      last = batch_index;
    }
    from = -1;
  }
}

const NONE: FailedItemsRow[] = [];

async function failureOfBatch(job: JobRow, row: FailedBatchRow, reader: PayloadReader): Promise<Failure> {
  const { batch_index, round, attempts, letter_error } = row;
  return {
    batch_id: batchId(job.job_id, batch_index),
    batch_index,
    round,
    receive_count: attempts,
    ...errorOf(row.error_json),
    ...(letter_error === null ? {} : { letter_error }),
    ...(await reader.read(batch_index)),
  };
}

async function failureOfItems(
  job: JobRow,
  { batch_index, round }: FailedBatchRow,
  { first_item, next_item, attempts, source_path, source_line, letter_error, error_json }: FailedItemsRow,
  reader: PayloadReader,
): Promise<Failure> {
  const count = next_item - first_item;
  const line = source_line === null ? {} : { line: source_line };
  return {
    batch_id: batchId(job.job_id, batch_index),
    batch_index,
    item_index: first_item,
    ...(count === 1 ? {} : { item_count: count }),
    ...(source_path === null ? {} : { source: { path: source_path, ...line } }),
    ...{ round, receive_count: attempts },
    ...errorOf(error_json),
    ...(letter_error === null ? {} : { letter_error }),
    ...(await reader.read(batch_index, { first: first_item, next: next_item })),
  };
}

function errorOf(json: string): Pick<Failure, "error"> {
  const { type, message, traceback } = JSON.parse(json) as WorkerFault;
  return { error: { type, message, traceback } };
}

/** Reads batches in order; keeps the segment that the last one was in. */
class PayloadReader {
  private readonly source: FailureSource;
  private readonly job: JobRow;
  private readonly segments: SegmentReader | undefined;
  private loaded: LoadedSegment | undefined;
  /** The batch of which items were read last. */
  private split: { batchIndex: number; items: BatchItems } | undefined;

  /** `batchSize`: undefined if the retention has removed the input. */
  constructor(source: FailureSource, job: JobRow, batchSize: number | undefined) {
    this.source = source;
    this.job = job;
    const input = jobInput({ ...source, jobId: job.job_id });
    this.segments = batchSize === undefined ? undefined : new SegmentReader(input, batchSize);
  }

  async close(): Promise<void> {
    await this.segments?.close();
  }

  /** `items`: of the batch; all of them if undefined. */
  async read(
    batchIndex: number,
    items?: { first: number; next: number },
  ): Promise<Pick<Failure, "payloadText" | "payload_error">> {
    try {
      if (this.loaded?.holds(batchIndex) !== true) this.loaded = await this.load(batchIndex);
      if (items === undefined) return { payloadText: this.loaded.payload(batchIndex).toString("utf8") };
      return { payloadText: this.itemsOf(batchIndex).slice(items.first, items.next).toString("utf8") };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return { payloadText: undefined, payload_error: error.message };
    }
  }

  private itemsOf(batchIndex: number): BatchItems {
    if (this.split?.batchIndex !== batchIndex)
      this.split = { batchIndex, items: new BatchItems(this.loaded!.payload(batchIndex)) };
    return this.split.items;
  }

  private async load(batchIndex: number): Promise<LoadedSegment> {
    const segment = await findWholeSegment(this.source.db, this.job.job_id, batchIndex);
    if (this.job.pruned_time !== null)
      throw new InputError(`the batches of this job were removed at ${this.job.pruned_time}`);
    if (this.segments === undefined) throw new InputError("the batches of this job were removed");
    if (segment === undefined) throw new InputError(`the segment of batch ${batchIndex} is gone`);
    if (this.loaded !== undefined) this.segments.letGo(this.loaded);
    this.loaded = undefined;
    return this.segments.load(segment);
  }
}
