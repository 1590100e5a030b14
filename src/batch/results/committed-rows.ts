/**
 * Reads the predictions of a job that are committed, in the order of batches: from its parts, and from the spool what
 * is in no part yet. It works while the job runs, and after it has ended.
 */

import { ServiceError } from "../../contracts/errors.ts";
import { RESULTS_READ_BYTES } from "../../contracts/limits/outputs.ts";
import type { Database } from "../../database/database.ts";
import { findSegment } from "../../database/segment-rows.ts";
import { ObjectMissing, type ObjectStore } from "../../object-store/object-store.ts";
import { chunksOf } from "../output/part-chunks.ts";
import { type Part, partWith } from "../output/part-rows.ts";
import { SpoolReader } from "../rows/spool-reader.ts";
import { settledRange } from "./committed-range.ts";
import { RowRange } from "./row-range.ts";

/** How often a part may appear in the moment in which its rows leave the spool. */
const TRIES = 5;
const NOTHING = Buffer.alloc(0);

export interface CommittedRowsOptions {
  db: Database;
  store: ObjectStore;
  /** The job's spool. */
  rowsDirectory: string;
  jobId: string;
  prefix: string;
  /** Whether unsettled batches may still be settled: the rows end before the first of them. */
  isRunning: boolean;
}

/** Rows, or a piece of them, and the first batch that is not complete with them. */
export interface CommittedRows {
  bytes: Buffer;
  next: number;
}

/** The rows of the batches from `first` to the one before `end`, as far as they are committed. */
export async function* committedRows(
  options: CommittedRowsOptions,
  first: number,
  end: number,
): AsyncGenerator<CommittedRows> {
  let tries = 0;
  for (let next = first; next < end; ) {
    const before = next;
    const part = await partWith(options.db, options.jobId, next);
    const isInPart = part !== undefined && part.first_batch <= next;
    const rows = isInPart ? fromPart(options, part, next, end) : fromSpool(options, next, end);
    try {
      for await (const piece of rows) {
        yield piece;
        next = piece.next;
      }
    } catch (error) {
      // Its rows are in a part now.
      if (!isMissing(error) || next > before || ++tries > TRIES) throw error;
      continue;
    }
    if (next === before) return;
  }
}

async function* fromPart(
  { store, prefix }: CommittedRowsOptions,
  part: Part,
  first: number,
  end: number,
): AsyncGenerator<CommittedRows> {
  const range = new RowRange(first, end);
  for await (const chunk of chunksOf(store, prefix, part, { length: RESULTS_READ_BYTES })) {
    // Also if it has no rows of the range: whoever reads them may have left.
    yield { bytes: range.cut(chunk), next: range.next };
    if (range.isDone) return yield { bytes: NOTHING, next: end };
  }
  yield { bytes: NOTHING, next: Math.min(end, part.next_batch) };
}

/** The settled batches of one segment. */
async function* fromSpool(
  { db, jobId, rowsDirectory, isRunning }: CommittedRowsOptions,
  first: number,
  end: number,
): AsyncGenerator<CommittedRows> {
  const segment = await findSegment(db, jobId, first);
  const range = segment === undefined ? undefined : settledRange(segment, first, end, isRunning);
  if (range === undefined) return;
  const reader = await SpoolReader.open(rowsDirectory).catch((error: unknown) => {
    throw !isRunning && isMissing(error) ? lostRows(jobId, range.first) : error;
  });
  try {
    yield* reader.rows(range.first, range.next);
  } finally {
    await reader.close();
  }
  yield { bytes: NOTHING, next: range.next };
}

/** The disk with the rows is gone, and with it the job's end: a part of the output would have them. */
function lostRows(jobId: string, batch: number): ServiceError {
  return new ServiceError(
    "wrong_state",
    `the predictions of job ${jobId} from batch ${batch} on were on a disk that is gone; resume the job, which runs these batches again`,
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof ObjectMissing || (error as NodeJS.ErrnoException).code === "ENOENT";
}
