/**
 * The rows of a job's workers over time: one for each process, as long as it worked for the job. After so many rows, the
 * spans that end are counted in the last one.
 */
import { WORKER_SPANS_MAX } from "../../contracts/limits/jobs.ts";
import type { Database, Statements } from "../../database/database.ts";
import { first } from "../../database/database.ts";

/** `ended`: with the job, or because it is not needed any more. `lost`: with its server. */
export type SpanEnd = "ended" | "died" | "failed" | "recycled" | "yielded" | "lost";

export interface SpanRow {
  worker_id: string;
  started_time: string;
  ready_time: string | null;
  ended_time: string | null;
  how: SpanEnd | null;
  reason: string | null;
  /** Batches that it got. */
  batches: number;
  /** How many workers the row counts; of several, it has the first start, and the end of the last one. */
  spans: number;
}

export type NumberedSpan = SpanRow & { number: number };

/** The number of the row that counts all further ones. */
export const LAST_SPAN = WORKER_SPANS_MAX - 1;
const COLUMNS = "worker_id, started_time, ready_time, ended_time, how, reason, batches, spans";
const INSERT = `INSERT INTO worker_spans (job_id, number, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (job_id, number) DO UPDATE SET ended_time = excluded.ended_time, how = excluded.how,
    reason = excluded.reason, `;
const SAVE = `${INSERT} ready_time = excluded.ready_time, batches = excluded.batches`;
const COUNT = `${INSERT} worker_id = excluded.worker_id, batches = worker_spans.batches + excluded.batches,
    spans = worker_spans.spans + 1`;

/** In one commit. The spans with the last number are added to its row. */
export async function saveSpans(db: Database, jobId: string, spans: readonly NumberedSpan[]): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { number, ...span } of spans) {
      const { worker_id, started_time, ready_time, ended_time, how, reason, batches } = span;
      const values = [worker_id, started_time, ready_time, ended_time, how, reason, batches, 1];
      await tx.run(number === LAST_SPAN ? COUNT : SAVE, [jobId, number, ...values]);
    }
  });
}

export function spansOf(db: Statements, jobId: string): Promise<NumberedSpan[]> {
  return db.all(`SELECT number, ${COLUMNS} FROM worker_spans WHERE job_id = ? ORDER BY number`, [jobId]);
}

/** The number of the next one. */
export async function nextSpan(db: Statements, jobId: string): Promise<number> {
  const sql = "SELECT MAX(number) AS last FROM worker_spans WHERE job_id = ?";
  return ((await first<{ last: number | null }>(db, sql, [jobId]))?.last ?? -1) + 1;
}

/** The workers of a former controller are gone: when they ended is not known. */
export async function loseSpans(tx: Statements, time: string): Promise<void> {
  await tx.run("UPDATE worker_spans SET ended_time = ?, how = 'lost' WHERE ended_time IS NULL", [time]);
}
