/**
 * What is kept of jobs that have ended, and for how long: their segments, failures, own files and logs go after the retention, by
 * unlinking files and deleting few rows at a time. The record of the job itself stays until its API is deleted.
 */
import { rm } from "node:fs/promises";
import { wallMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { PRUNE_EVERY_MS, PRUNED_JOBS_AT_ONCE, PRUNED_ROWS_AT_ONCE } from "../contracts/limits.ts";
import type { Database } from "../database/database.ts";
import { jobDirectory } from "./own-file.ts";

export interface RetentionOptions {
  db: Database;
  log: Log;
  dataDir: string;
  logDirectory: (jobId: string) => string;
  /** Milliseconds after the end: of jobs that succeeded, and of all others. */
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

  /** Prunes what is due at `nowMs`; resolves to the jobs that were. */
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

  /** One whose files cannot be removed keeps none of the others. */
  private async tryToPrune(jobId: string, nowMs: number): Promise<boolean> {
    try {
      await this.prune(jobId, new Date(nowMs).toISOString());
      return true;
    } catch (error) {
      this.options.log.error({ job_id: jobId, err: error }, "an old job could not be pruned");
      return false;
    }
  }

  /** In the order of their ids, those after `after`. */
  private async due(nowMs: number, after: string): Promise<string[]> {
    const { db, keepMs, keepFailedMs } = this.options;
    const before = (ms: number) => new Date(nowMs - ms).toISOString();
    // Segments go last: whoever still has some behind its mark was cut off.
    const rows = await db.all<{ job_id: string }>(
      `SELECT job_id FROM jobs WHERE end_time IS NOT NULL AND job_id > ?
       AND ((pruned_time IS NULL AND end_time < CASE WHEN status = 'status_succeeded' THEN ? ELSE ? END)
         OR (pruned_time IS NOT NULL AND EXISTS (SELECT 1 FROM segments WHERE segments.job_id = jobs.job_id)))
       ORDER BY job_id LIMIT ?`,
      [after, before(keepMs), before(keepFailedMs), PRUNED_JOBS_AT_ONCE],
    );
    return rows.map(({ job_id }) => job_id);
  }

  /** The mark comes first: no new round begins behind it. */
  private async prune(jobId: string, time: string): Promise<void> {
    const { db, dataDir, logDirectory } = this.options;
    const mark = "UPDATE jobs SET pruned_time = ? WHERE job_id = ? AND end_time IS NOT NULL";
    if ((await db.run(mark, [time, jobId])) === 0) return;
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
