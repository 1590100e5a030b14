/** What is asked of all parts of a job. They may be many, so that no statement reads all of them. */
import type { Statements } from "../../database/database.ts";

/** 2,000 take 1 ms. */
export const PARTS_READ_AT_ONCE = 2_000;

/** The files of the spool that have rows of good parts: they stay until the job's data is removed. */
export async function filesOfParts(db: Statements, jobId: string): Promise<number[]> {
  const files: number[] = [];
  for (let last = 0; ; ) {
    // SQLite searches the index by the first of the two conditions, and needs the other one to use it.
    const [next] = await db.all<{ file: number | null }>(
      "SELECT min(file) AS file FROM batch_parts WHERE job_id = ? AND file > ? AND file > 0",
      [jobId, last],
    );
    if (next!.file === null) return files;
    last = next!.file;
    files.push(last);
  }
}

/** How many batches have failed with some of their items only, of a job with output whose batches are all settled. */
export async function countPartial(db: Statements, jobId: string): Promise<number> {
  let counted = 0;
  let lastCounted = -1;
  for await (const { batch_index, file } of batchesOfParts(db, jobId)) {
    if (file === 0 || batch_index === lastCounted) continue;
    lastCounted = batch_index;
    counted++;
  }
  return counted;
}

interface SomeParts {
  batch_index: number;
  last_item: number;
  /** Of one of the parts with rows; 0 if none has any. */
  file: number;
  parts: number;
}

/** The batches with parts, in order. One with many comes several times. */
async function* batchesOfParts(db: Statements, jobId: string): AsyncGenerator<SomeParts> {
  let last = { batch_index: -1, last_item: -1 };
  for (;;) {
    const rows = await db.all<SomeParts>(
      `SELECT batch_index, max(first_item) AS last_item, max(file) AS file, count(*) AS parts
       FROM (SELECT batch_index, first_item, file FROM batch_parts
             WHERE job_id = ? AND (batch_index, first_item) > (?, ?) ORDER BY batch_index, first_item LIMIT ?) AS piece
       GROUP BY batch_index ORDER BY batch_index`,
      [jobId, last.batch_index, last.last_item, PARTS_READ_AT_ONCE],
    );
    yield* rows;
    if (rows.reduce((sum, { parts }) => sum + parts, 0) < PARTS_READ_AT_ONCE) return;
    last = rows.at(-1)!;
  }
}
