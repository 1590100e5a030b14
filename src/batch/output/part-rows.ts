/** The parts of a job's output in the database: which batches each has, and what a reader can check it by. */
import { first, type Statements } from "../../database/database.ts";

export interface Part {
  /** From 0, in the order of batches. */
  number: number;
  /** It has the rows of the batches from this one ... */
  first_batch: number;
  /** ... to the one before this. Batches that failed have none. */
  next_batch: number;
  /** How many batches have rows in it. */
  batches: number;
  /** The name below the job's prefix in the store. */
  name: string;
  rows: number;
  /** As it is stored, so after compression. */
  bytes: number;
  sha256: string;
  /** Before compression; null if it is not compressed. */
  unpacked_bytes: number | null;
}

export interface PartTotals {
  /** The parts have all batches before this one. */
  batches: number;
  parts: number;
  rows: number;
  bytes: number;
}

const PARTS_A_PAGE = 1000;
const COLUMNS = "number, first_batch, next_batch, batches, name, rows, bytes, sha256, unpacked_bytes";

/** Adds a part, or replaces the one with its number. False if the job has another owner. */
export async function savePart(tx: Statements, jobId: string, epoch: number, part: Part): Promise<boolean> {
  const { number, first_batch, next_batch, batches, name, rows, bytes, sha256, unpacked_bytes } = part;
  await tx.run("DELETE FROM output_parts WHERE job_id = ? AND number = ?", [jobId, number]);
  const changed = await tx.run(
    `INSERT INTO output_parts (job_id, ${COLUMNS}) SELECT job_id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM jobs
     WHERE job_id = ? AND epoch = ?`,
    [number, first_batch, next_batch, batches, name, rows, bytes, sha256, unpacked_bytes, jobId, epoch],
  );
  return changed === 1;
}

/** Up to `limit` parts from `number` on, in order. */
export function parts(db: Statements, jobId: string, number: number, limit: number): Promise<Part[]> {
  return db.all<Part>(
    `SELECT ${COLUMNS} FROM output_parts WHERE job_id = ? AND number >= ? ORDER BY number LIMIT ?`,
    [jobId, number, limit],
  );
}

/** Every part, in order. */
export async function allParts(db: Statements, jobId: string): Promise<Part[]> {
  const all: Part[] = [];
  for (;;) {
    const page = await parts(db, jobId, all.length, PARTS_A_PAGE);
    all.push(...page);
    if (page.length < PARTS_A_PAGE) return all;
  }
}

/** The part in whose range a batch is; undefined if there is none yet. */
export function partWith(db: Statements, jobId: string, batchIndex: number): Promise<Part | undefined> {
  return first<Part>(
    db,
    `SELECT ${COLUMNS} FROM output_parts WHERE job_id = ? AND next_batch > ? ORDER BY number LIMIT 1`,
    [jobId, batchIndex],
  );
}

/** The last part; undefined if there is none yet. */
export function lastPart(db: Statements, jobId: string): Promise<Part | undefined> {
  return first<Part>(
    db,
    `SELECT ${COLUMNS} FROM output_parts WHERE job_id = ? ORDER BY number DESC LIMIT 1`,
    [jobId],
  );
}

/** Forgets what the output of a job has. Its objects stay. */
export async function forgetParts(tx: Statements, jobId: string): Promise<void> {
  await tx.run("DELETE FROM output_parts WHERE job_id = ?", [jobId]);
}

/** What is in the parts of a job so far. */
export async function partTotals(db: Statements, jobId: string): Promise<PartTotals> {
  const totals = await first<PartTotals>(
    db,
    `SELECT COUNT(*) AS parts, COALESCE(SUM(rows), 0) AS rows, COALESCE(SUM(bytes), 0) AS bytes,
     COALESCE(MAX(next_batch), 0) AS batches FROM output_parts WHERE job_id = ?`,
    [jobId],
  );
  return totals!;
}
