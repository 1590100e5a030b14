/**
 * Parts of split batches whose rows were in files that are gone. If their batch is not settled, they are tried again.
 * Those of settled batches are in a part of the output; a redrive of such a batch comes here again.
 */
import type { Database, Statements } from "../../database/database.ts";
import { findSegment, isSettled } from "../../database/segment-rows.ts";

const BATCHES_A_PAGE = 100;

/** `files`: the numbers of files of the spool that are gone. */
export async function reopenLostParts(db: Database, jobId: string, files: readonly number[]): Promise<void> {
  for (const file of files)
    for (let last = -1; ; ) {
      const rows = await db.all<{ batch_index: number }>(
        "SELECT DISTINCT batch_index FROM batch_parts WHERE job_id = ? AND file = ? AND batch_index > ? ORDER BY batch_index LIMIT ?",
        [jobId, file, last, BATCHES_A_PAGE],
      );
      for (const { batch_index } of rows) await db.transaction((tx) => reopen(tx, jobId, batch_index, file));
      if (rows.length < BATCHES_A_PAGE) break;
      last = rows.at(-1)!.batch_index;
    }
}

async function reopen(tx: Statements, jobId: string, batch: number, file: number): Promise<void> {
  const segment = await findSegment(tx, jobId, batch);
  if (segment === undefined || isSettled(segment, batch)) return;
  await tx.run(
    `UPDATE batch_parts SET state = 0, file = 0, position = 0, bytes = 0, row_count = 0
     WHERE job_id = ? AND batch_index = ? AND file = ?`,
    [jobId, batch, file],
  );
}
