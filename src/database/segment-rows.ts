/**
 * Segments: runs of consecutive batches of a job, with a bitmap of the settled ones. These are rows only: the bytes
 * stay in the input, or in the job's own file.
 */
import { first, type Statements } from "./database.ts";

/** A piece of an input file. An empty `path` is the job's own file of items. */
export interface ByteRange {
  path: string;
  etag: string;
  start: number;
  end: number;
  /** For lines of input files: which they are. Missing in segments of releases that did not record it. */
  lines?: RangeLines;
}

export interface RangeLines {
  /** How many lines of the file come before the range, blank ones included. */
  before: number;
  /** How many items the range has. */
  items: number;
  /** The compressed file that they were copied from, if `path` is not the input file. */
  file?: string;
}

/** Which batches of a segment are settled. */
export interface SegmentProgress {
  first_batch: number;
  batch_count: number;
  /** One bit per batch, in order, lowest bit first; set when the batch succeeded or finally failed. */
  settled: Uint8Array;
  settled_count: number;
}

export interface Segment extends SegmentProgress {
  item_count: number;
  ranges: ByteRange[];
  has_blank_lines: boolean;
}

interface ProgressRow {
  first_batch: number;
  batch_count: number;
  settled: Uint8Array | null;
  settled_count: number;
}

interface SegmentRow extends ProgressRow {
  item_count: number;
  ranges_json: string;
  has_blank_lines: number;
}

/** Without the ranges, which are up to megabytes of text to parse. */
const PROGRESS = "first_batch, batch_count, settled, settled_count";

/** One statement for many: PostgreSQL then needs one round trip. SQLite keeps each text of a statement, so few exist. */
const APPENDED_AT_ONCE = 50;

export async function appendSegments(
  tx: Statements,
  jobId: string,
  segments: readonly Omit<Segment, "settled" | "settled_count">[],
): Promise<void> {
  for (let at = 0; at < segments.length; at += APPENDED_AT_ONCE) {
    const some = segments.slice(at, at + APPENDED_AT_ONCE);
    await tx.run(
      `INSERT INTO segments (job_id, first_batch, batch_count, item_count, ranges_json, has_blank_lines)
       VALUES ${some.map(() => "(?, ?, ?, ?, ?, ?)").join(", ")}`,
      some.flatMap(({ first_batch, batch_count, item_count, ranges, has_blank_lines }) => [
        ...[jobId, first_batch, batch_count, item_count],
        ...[JSON.stringify(ranges), has_blank_lines ? 1 : 0],
      ]),
    );
  }
}

/** Up to `limit` segments from `fromBatch` on that still have batches to settle, in order. */
export async function unsettledSegments(
  db: Statements,
  jobId: string,
  fromBatch: number,
  limit: number,
): Promise<Segment[]> {
  const rows = await db.all<SegmentRow>(
    "SELECT * FROM segments WHERE job_id = ? AND first_batch >= ? AND settled_count < batch_count ORDER BY first_batch LIMIT ?",
    [jobId, fromBatch, limit],
  );
  return rows.map(toSegment);
}

/** Up to `limit` segments from `fromBatch` on that have settled batches, in order. */
export async function segmentsWithSettled(
  db: Statements,
  jobId: string,
  fromBatch: number,
  limit: number,
): Promise<SegmentProgress[]> {
  const rows = await db.all<ProgressRow>(
    `SELECT ${PROGRESS} FROM segments WHERE job_id = ? AND first_batch >= ? AND settled_count > 0
     ORDER BY first_batch LIMIT ?`,
    [jobId, fromBatch, limit],
  );
  return rows.map(toProgress);
}

/** The batch after the first `count` unsettled ones, rounded up to the end of a segment. */
export async function afterUnsettled(db: Statements, jobId: string, count: number): Promise<number> {
  const row = await first<{ next: number | null }>(
    db,
    `SELECT max(first_batch + batch_count) AS next FROM
       (SELECT first_batch, batch_count, sum(batch_count - settled_count) OVER (ORDER BY first_batch)
          - (batch_count - settled_count) AS unsettled_before
        FROM segments WHERE job_id = ? AND settled_count < batch_count) AS counted
     WHERE unsettled_before < ?`,
    [jobId, count],
  );
  return Number(row?.next ?? 0);
}

/** The progress of the segment that holds a batch. */
export async function findSegment(
  db: Statements,
  jobId: string,
  batchIndex: number,
): Promise<SegmentProgress | undefined> {
  const row = await rowWith<ProgressRow>(db, PROGRESS, jobId, batchIndex);
  return row === undefined ? undefined : toProgress(row);
}

/** The segment that holds a batch, with the ranges of its lines. */
export async function findWholeSegment(
  db: Statements,
  jobId: string,
  batchIndex: number,
): Promise<Segment | undefined> {
  const row = await rowWith<SegmentRow>(db, "*", jobId, batchIndex);
  return row === undefined ? undefined : toSegment(row);
}

function rowWith<T extends ProgressRow>(db: Statements, columns: string, jobId: string, batchIndex: number) {
  return first<T>(
    db,
    `SELECT ${columns} FROM segments WHERE job_id = ? AND first_batch <= ? ORDER BY first_batch DESC LIMIT 1`,
    [jobId, batchIndex],
  );
}

function toSegment({ ranges_json, ...row }: SegmentRow): Segment {
  return {
    ...row,
    ...toProgress(row),
    ranges: JSON.parse(ranges_json) as ByteRange[],
    has_blank_lines: row.has_blank_lines === 1,
  };
}

function toProgress(row: ProgressRow): SegmentProgress {
  const { first_batch, batch_count, settled, settled_count } = row;
  const bits = settled === null ? new Uint8Array(Math.ceil(batch_count / 8)) : Uint8Array.from(settled);
  return { first_batch, batch_count, settled: bits, settled_count };
}

export async function writeSettled(tx: Statements, jobId: string, segment: SegmentProgress): Promise<void> {
  await tx.run("UPDATE segments SET settled = ?, settled_count = ? WHERE job_id = ? AND first_batch = ?", [
    segment.settled,
    segment.settled_count,
    jobId,
    segment.first_batch,
  ]);
}

export function isSettled(segment: SegmentProgress, batchIndex: number): boolean {
  const bit = batchIndex - segment.first_batch;
  return (segment.settled[bit >> 3]! & (1 << (bit & 7))) !== 0;
}

/** Sets the bit; false when it was set already, so that nothing is counted twice. */
export function markSettled(segment: SegmentProgress, batchIndex: number): boolean {
  if (isSettled(segment, batchIndex)) return false;
  const bit = batchIndex - segment.first_batch;
  segment.settled[bit >> 3]! |= 1 << (bit & 7);
  segment.settled_count++;
  return true;
}

/** Clears the bit: the batch must run again. */
export function clearSettled(segment: SegmentProgress, batchIndex: number): void {
  if (!isSettled(segment, batchIndex)) return;
  const bit = batchIndex - segment.first_batch;
  segment.settled[bit >> 3]! &= ~(1 << (bit & 7));
  segment.settled_count--;
}
