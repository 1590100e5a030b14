/** The rows of the objects that have a job's copied items: where each begins, and its name below the job's prefix. */
import type { Statements } from "../../database/database.ts";

export interface ItemPiece {
  /** Bytes of all before it. */
  start: number;
  bytes: number;
  name: string;
}

/** In order. */
export function piecesFrom(db: Statements, jobId: string): Promise<ItemPiece[]> {
  return db.all<ItemPiece>("SELECT start, bytes, name FROM item_pieces WHERE job_id = ? ORDER BY start", [
    jobId,
  ]);
}

/** False if another controller has the job now. */
export async function savePiece(
  db: Statements,
  jobId: string,
  epoch: number,
  { start, bytes, name }: ItemPiece,
): Promise<boolean> {
  const changed = await db.run(
    `INSERT INTO item_pieces (job_id, start, bytes, name)
     SELECT job_id, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT) FROM jobs WHERE job_id = ? AND epoch = ?
     ON CONFLICT (job_id, start) DO UPDATE SET bytes = excluded.bytes, name = excluded.name`,
    [start, bytes, name, jobId, epoch],
  );
  return changed === 1;
}

/** Those from `start` on: what they have was never committed, or nobody needs it. */
export async function removePieces(db: Statements, jobId: string, start: number): Promise<void> {
  await db.run("DELETE FROM item_pieces WHERE job_id = ? AND start >= ?", [jobId, start]);
}
