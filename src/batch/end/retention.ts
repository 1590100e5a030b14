/**
 * Removes the data of ended jobs after the retention: their input, segments, failures, own files and logs. It unlinks
 * files and deletes few rows at a time. The record of the job itself stays until its API is deleted.
 */
import { rm } from "node:fs/promises";
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { jobDirectory } from "../../contracts/data-layout.ts";
import { PRUNE_EVERY_MS, PRUNED_JOBS_AT_ONCE, PRUNED_ROWS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { removeInput } from "../records/stored-input.ts";

export interface RetentionOptions {
  db: Database;
  log: Log;
  dataDir: string;
  logDirectory: (jobId: string) => string;
  /** Milliseconds after the end: `keepMs` for jobs that succeeded, `keepFailedMs` for all others. */
  keepMs: number;
  keepFailedMs: number;
}

export class Retention implements Service {
  private readonly options: RetentionOptions;
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isStopped = false;

  constructor(options: RetentionOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.wakeIn(PRUNE_EVERY_MS / 60);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** Prunes the jobs that are due at `nowMs`; resolves to those that were pruned. */
  async runOnce(nowMs: number): Promise<string[]> {
    const pruned: string[] = [];
    for (let after = "", due = await this.due(nowMs, after); due.length > 0 && !this.isStopped; ) {
      for (const jobId of due) if (await this.tryToPrune(jobId, nowMs)) pruned.push(jobId);
      after = due.at(-1)!;
      due = await this.due(nowMs, after);
    }
    return pruned;
  }

  private wakeIn(ms: number): void {
    this.timer = setTimeout(() => {
      this.running = this.runOnce(wallMs())
        .then((pruned) => {
          if (pruned.length > 0)
            this.options.log.info({ jobs: pruned.length }, "removed the data of old jobs");
        })
        .catch((error: Error) => this.options.log.error({ err: error }, "old jobs could not be pruned"))
        .finally(() => {
          if (!this.isStopped) this.wakeIn(PRUNE_EVERY_MS);
        });
    }, ms).unref();
  }

  /** If a job's files cannot be removed, the other jobs are still pruned. */
  private async tryToPrune(jobId: string, nowMs: number): Promise<boolean> {
    try {
      await this.prune(jobId, new Date(nowMs).toISOString());
      return true;
    } catch (error) {
      this.options.log.error({ job_id: jobId, err: error }, "an old job could not be pruned");
      return false;
    }
  }

  /** The next jobs to prune: those after `after`, in the order of their ids. */
  private async due(nowMs: number, after: string): Promise<string[]> {
    const { db, keepMs, keepFailedMs } = this.options;
    const before = (ms: number) => new Date(nowMs - ms).toISOString();
    // Segments are deleted last: a marked job that still has some was interrupted.
    const rows = await db.all<{ job_id: string }>(
      `SELECT job_id FROM jobs WHERE end_time IS NOT NULL AND job_id > ?
       AND ((pruned_time IS NULL AND end_time < CASE WHEN status = 'status_succeeded' THEN ? ELSE ? END)
         OR (pruned_time IS NOT NULL AND EXISTS (SELECT 1 FROM segments WHERE segments.job_id = jobs.job_id)))
       ORDER BY job_id LIMIT ?`,
      [after, before(keepMs), before(keepFailedMs), PRUNED_JOBS_AT_ONCE],
    );
    return rows.map(({ job_id }) => job_id);
  }

  /** The mark comes first: after it, no new round can begin, so nobody needs the input. */
  private async prune(jobId: string, time: string): Promise<void> {
    const { db, dataDir, logDirectory } = this.options;
    const mark = "UPDATE jobs SET pruned_time = ? WHERE job_id = ? AND end_time IS NOT NULL";
    const isMarked = await db.transaction(async (tx) => {
      if ((await tx.run(mark, [time, jobId])) === 0) return false;
      await removeInput(tx, jobId);
      return true;
    });
    if (!isMarked) return;
    for (const directory of [jobDirectory(dataDir, jobId), logDirectory(jobId)])
      await rm(directory, { recursive: true, force: true });
    await this.deleteRows("batches", "batch_index", jobId);
    await this.deleteRows("segments", "first_batch", jobId);
  }

  private async deleteRows(table: "batches" | "segments", key: string, jobId: string): Promise<void> {
    const some = `SELECT ${key} FROM ${table} WHERE job_id = ? LIMIT ${PRUNED_ROWS_AT_ONCE}`;
    const statement = `DELETE FROM ${table} WHERE job_id = ? AND ${key} IN (${some})`;
    while ((await this.options.db.run(statement, [jobId, jobId])) > 0);
  }
}
