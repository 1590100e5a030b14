/**
 * Removes the data of ended jobs after the retention: their input, segments, failures, own files, outputs that the
 * server keeps, logs and long configs. It unlinks files and deletes few rows at a time. When the record of the job
 * itself goes is in forget-job.ts. Messages in Quern's own dead letter queues are kept as long as the data of failed jobs.
 */

import { inBackground } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { jobDirectory, outputDirectory } from "../../contracts/data-layout.ts";
import {
  AGED_JOBS_AT_ONCE,
  CONFIG_KEPT_LENGTH_MAX,
  PRUNE_EVERY_MS,
  PRUNED_BATCHES_AT_ONCE,
  PRUNED_SEGMENTS_AT_ONCE,
} from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { removeOldLetters } from "../letters/old-letters.ts";
import { forgetParts } from "../output/part-rows.ts";
import type { ItemsStore } from "../records/items-file.ts";
import { removeInput } from "../records/stored-input.ts";
import {
  endRequests,
  forgetJob,
  forgottenBefore,
  hasRequests,
  IS_ASKED_FOR,
  IS_FORGOTTEN,
} from "./forget-job.ts";

/** The condition that a job's data is due, for a statement about `jobs`. Its parameters are `dueBefore`. */
const IS_DUE = `(end_time < CASE WHEN status = 'status_succeeded' THEN ? ELSE ? END OR ${IS_ASKED_FOR})`;

const LONG_CONFIG = `length(config_json) > ${CONFIG_KEPT_LENGTH_MAX}`;

export interface RetentionOptions {
  db: Database;
  log: Log;
  dataDir: string;
  items: Pick<ItemsStore, "giveUp">;
  /** Removes soon what jobs have given up. */
  removeSoon: () => void;
  logDirectory: (jobId: string) => string;
  /** Milliseconds after the end: `keepMs` for jobs that succeeded, `keepFailedMs` for all others. */
  keepMs: number;
  keepFailedMs: number;
  /** Of the records of all of them; undefined: for ever. */
  keepRecordsMs?: number | undefined;
  /** Resolves when no worker of an ended job writes its files any more. */
  leftBy: (jobId: string) => Promise<void>;
  /** Removes the logs of jobs of APIs that have too many, until `isStopped`. Resolves to how many jobs lost theirs. */
  boundLogs: (isStopped: () => boolean) => Promise<number>;
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
    // A start does not fail because of what can wait.
    const isAsked = await hasRequests(this.options.db).catch(() => false);
    this.wakeIn(isAsked ? 0 : PRUNE_EVERY_MS / 60);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** Prunes the jobs that are due at `nowMs`; resolves to those that were pruned. */
  async runOnce(nowMs: number): Promise<string[]> {
    const pruned: string[] = [];
    for (let after = ""; !this.isStopped; ) {
      const jobs = await this.next(nowMs, after);
      for (const { job_id, is_due } of jobs)
        if (is_due === 1 && (await this.tryToPrune(job_id, nowMs))) pruned.push(job_id);
      if (jobs.length < AGED_JOBS_AT_ONCE) break;
      after = jobs.at(-1)!.job_id;
    }
    await endRequests(this.options.db);
    if (pruned.length > 0) this.options.removeSoon();
    return pruned;
  }

  /** Begins at once, as when somebody has asked for records to be forgotten. */
  soon(): void {
    // After the one in progress, which may have looked at these jobs already.
    const next = Promise.resolve(this.running).then(() => {
      if (!this.isStopped) this.wakeIn(0);
    });
    inBackground(next);
  }

  private wakeIn(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.running = this.removeOld(wallMs())
        .catch((error: Error) =>
          this.options.log.error({ event: "jobs_not_pruned", err: error }, "old jobs could not be pruned"),
        )
        .finally(() => {
          if (!this.isStopped) this.wakeIn(PRUNE_EVERY_MS);
        });
    }, ms).unref();
  }

  private async removeOld(nowMs: number): Promise<void> {
    const { log } = this.options;
    const pruned = await this.runOnce(nowMs);
    if (pruned.length > 0)
      log.info({ event: "jobs_pruned", jobs: pruned.length }, "removed the data of old jobs");
    const logs = await this.options.boundLogs(() => this.isStopped);
    if (logs > 0) log.info({ event: "logs_removed", jobs: logs }, "removed the logs of old jobs");
    const messages = await this.removeLetters(nowMs);
    if (messages > 0)
      log.info({ event: "messages_removed", messages }, "removed old messages from dead letter queues");
  }

  /** Removes the messages of Quern's own queues that are due at `nowMs`; resolves to their number. */
  removeLetters(nowMs: number): Promise<number> {
    return removeOldLetters(this.options.db, nowMs - this.options.keepFailedMs, () => this.isStopped);
  }

  /** If a job's files cannot be removed, the other jobs are still pruned. */
  private async tryToPrune(jobId: string, nowMs: number): Promise<boolean> {
    try {
      if (!(await this.prune(jobId, nowMs))) return false;
      await forgetJob(this.options.db, jobId, forgottenBefore(nowMs, this.options.keepRecordsMs));
      return true;
    } catch (error) {
      this.options.log.error(
        { event: "jobs_not_pruned", job_id: jobId, err: error },
        "an old job could not be pruned",
      );
      return false;
    }
  }

  /**
   * The next jobs after `after`, in the order of their ids, and whether they are to be pruned or forgotten. There may be
   * millions: a statement that looked for those that are due would look at all of them.
   */
  private next(nowMs: number, after: string): Promise<{ job_id: string; is_due: number }[]> {
    const { db, keepRecordsMs } = this.options;
    // Segments are deleted last: a marked job that still has some was interrupted. Former releases kept long configs.
    return db.all(
      `SELECT job_id, CASE WHEN end_time IS NOT NULL
         AND ((pruned_time IS NULL AND ${IS_DUE})
           OR (pruned_time IS NOT NULL AND (${IS_FORGOTTEN}
             OR EXISTS (SELECT 1 FROM segments WHERE segments.job_id = jobs.job_id)
             OR EXISTS (SELECT 1 FROM job_configs WHERE ${LONG_CONFIG} AND job_configs.job_id = jobs.job_id))))
         THEN 1 ELSE 0 END AS is_due
       FROM jobs WHERE job_id > ? ORDER BY job_id LIMIT ?`,
      [...this.dueBefore(nowMs), ...forgottenBefore(nowMs, keepRecordsMs), after, AGED_JOBS_AT_ONCE],
    );
  }

  /** Which ends are old enough: of jobs that succeeded, and of all others. */
  private dueBefore(nowMs: number): [string, string] {
    const before = (ms: number) => new Date(nowMs - ms).toISOString();
    return [before(this.options.keepMs), before(this.options.keepFailedMs)];
  }

  /**
   * False if the job is not due any more: a new round has ended since it was found. The mark comes first: after it, no
   * new round can begin, so nobody needs the input.
   */
  private async prune(jobId: string, nowMs: number): Promise<boolean> {
    const { db, dataDir, items, logDirectory, leftBy } = this.options;
    const mark = `UPDATE jobs SET pruned_time = ?
      WHERE job_id = ? AND end_time IS NOT NULL AND (pruned_time IS NOT NULL OR ${IS_DUE})`;
    const isMarked = await db.transaction(async (tx) => {
      const marked = await tx.run(mark, [new Date(nowMs).toISOString(), jobId, ...this.dueBefore(nowMs)]);
      if (marked === 0) return false;
      await items.giveUp(tx, jobId);
      await removeInput(tx, jobId);
      await tx.run(`DELETE FROM job_configs WHERE ${LONG_CONFIG} AND job_id = ?`, [jobId]);
      await forgetParts(tx, jobId);
      return true;
    });
    if (!isMarked) return false;
    await leftBy(jobId);
    for (const directory of [
      jobDirectory(dataDir, jobId),
      outputDirectory(dataDir, jobId),
      logDirectory(jobId),
    ])
      await removeTree(directory);
    await this.deleteRows("batches", "batch_index", jobId, PRUNED_BATCHES_AT_ONCE);
    await this.deleteRows("batch_parts", "batch_index, first_item", jobId, PRUNED_BATCHES_AT_ONCE);
    await this.deleteRows("failed_items", "batch_index, first_item", jobId, PRUNED_BATCHES_AT_ONCE);
    await this.deleteRows("worker_spans", "number", jobId, PRUNED_SEGMENTS_AT_ONCE);
    await this.deleteRows("segments", "first_batch", jobId, PRUNED_SEGMENTS_AT_ONCE);
    return true;
  }

  private async deleteRows(table: string, key: string, jobId: string, atOnce: number) {
    const some = `SELECT ${key} FROM ${table} WHERE job_id = ? LIMIT ${atOnce}`;
    const statement = `DELETE FROM ${table} WHERE job_id = ? AND (${key}) IN (${some})`;
    while ((await this.options.db.run(statement, [jobId, jobId])) > 0);
  }
}
