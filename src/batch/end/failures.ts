/**
 * Reads the batches of a job that finally failed, each with its error and the text of its items
 * (docs/contract/jobs.md#failures).
 */
import { itemsFile } from "../../contracts/data-layout.ts";
import type { Database } from "../../database/database.ts";
import { findSegment } from "../../database/segment-rows.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { type LoadedSegment, SegmentReader } from "../dispatch/segment-reader.ts";
import { batchId } from "../letters/letters.ts";
import { type FailedBatchRow, failedBatches } from "../records/failed-batches.ts";
import { InputError, jobInput } from "../records/job-input.ts";
import type { JobRow } from "../records/job-rows.ts";
import { inputIfKept } from "../records/stored-input.ts";

export interface Failure {
  /** Stays the same when the batch runs again. */
  batch_id: string;
  batch_index: number;
  /** Attempts charged to it. */
  receive_count: number;
  error: { type: string; message: string; traceback: string };
  /** The batch's JSON array, as its workers received it; undefined if the input can no longer be read. */
  payloadText: string | undefined;
  /** Why the dead letter queue does not have it. */
  letter_error?: string;
  /** Why there is no payload. */
  payload_error?: string;
}

export interface FailurePage {
  /** Read on demand: a page may hold many megabytes. */
  failures: AsyncGenerator<Failure>;
  /** The batch index after which the next page begins; known once the last failure was read. */
  nextCursor: number | null;
}

/** The sources that failed batches are read from. */
export interface FailureSource {
  db: Database;
  store: ObjectStore;
  dataDir: string;
}

/** Few: an error has up to 97 KiB. */
const ROWS_AT_ONCE = 20;

/** Failures after batch `after`, in the order of batches. */
export async function failurePage(
  source: FailureSource,
  job: JobRow,
  after: number,
  limit: number,
): Promise<FailurePage> {
  const input = await inputIfKept(source.db, job.job_id);
  const reader = new PayloadReader(source, job, input?.batch_size);
  const failureOf = async (row: FailedBatchRow): Promise<Failure> => {
    const { batch_index, attempts, error_json, letter_error } = row;
    const { type, message, traceback } = JSON.parse(error_json) as WorkerFault;
    return {
      batch_id: batchId(job.job_id, batch_index),
      batch_index,
      receive_count: attempts,
      error: { type, message, traceback },
      ...(letter_error === null ? {} : { letter_error }),
      ...(await reader.read(batch_index)),
    };
  };
  async function* failures(): AsyncGenerator<Failure> {
    try {
      let [last, left] = [after, limit];
      for (;;) {
        const rows = await failedBatches(source.db, job.job_id, last, Math.min(ROWS_AT_ONCE, left + 1));
        if (rows.length === 0) return;
        for (const row of rows) {
          if (left-- === 0) {
            page.nextCursor = last;
            return;
          }
          yield await failureOf(row);
          last = row.batch_index;
        }
      }
    } finally {
      await reader.close();
    }
  }
  const page: FailurePage = { failures: failures(), nextCursor: null };
  return page;
}

/** Reads batches in order; keeps the segment that the last one was in. */
class PayloadReader {
  private readonly source: FailureSource;
  private readonly job: JobRow;
  private readonly segments: SegmentReader | undefined;
  private loaded: LoadedSegment | undefined;

  /** `batchSize`: undefined if the retention has removed the input. */
  constructor(source: FailureSource, job: JobRow, batchSize: number | undefined) {
    this.source = source;
    this.job = job;
    const input = jobInput(source.store, itemsFile(source.dataDir, job.job_id));
    this.segments = batchSize === undefined ? undefined : new SegmentReader(input, batchSize);
  }

  async close(): Promise<void> {
    await this.segments?.close();
  }

  async read(batchIndex: number): Promise<Pick<Failure, "payloadText" | "payload_error">> {
    try {
      if (this.loaded?.holds(batchIndex) !== true) this.loaded = await this.load(batchIndex);
      return { payloadText: this.loaded.payload(batchIndex).toString("utf8") };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      return { payloadText: undefined, payload_error: error.message };
    }
  }

  private async load(batchIndex: number): Promise<LoadedSegment> {
    const segment = await findSegment(this.source.db, this.job.job_id, batchIndex);
    if (this.job.pruned_time !== null)
      throw new InputError(`the batches of this job were removed at ${this.job.pruned_time}`);
    if (this.segments === undefined) throw new InputError("the batches of this job were removed");
    if (segment === undefined) throw new InputError(`the segment of batch ${batchIndex} is gone`);
    if (this.loaded !== undefined) this.segments.letGo(this.loaded);
    this.loaded = undefined;
    return this.segments.load(segment);
  }
}
