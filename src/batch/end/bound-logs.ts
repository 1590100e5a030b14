/**
 * Bounds the logs of the jobs of each API (docs/contract/operations.md#log-total): those of ended jobs go, the oldest
 * first, but never those of the newest. A job's own logs are bounded (contracts/limits/logs.ts), but an API may have
 * thousands of jobs.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { AGED_JOBS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";

export interface BoundLogsOptions {
  db: Database;
  logDirectory: (jobId: string) => string;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
  /** For the jobs of one API together. */
  logBytesMax: number;
}

/** A log that has been removed has one line, which says so. */
const NOTE_BYTES_MAX = 1024;

/** Resolves to how many jobs have lost their logs. */
export async function boundLogs(options: BoundLogsOptions, isStopped: () => boolean): Promise<number> {
  // An API that has jobs has a version. There are few versions, and maybe millions of jobs.
  const apis = await options.db.all<{ name: string }>("SELECT DISTINCT name FROM api_versions");
  let removed = 0;
  for (const { name } of apis) removed += await boundLogsOf(name, options, isStopped);
  return removed;
}

async function boundLogsOf(
  api: string,
  options: BoundLogsOptions,
  isStopped: () => boolean,
): Promise<number> {
  const { logDirectory, jobLog, logBytesMax } = options;
  let [kept, removed] = [0, 0];
  for await (const job of newestFirst(api, options.db)) {
    if (isStopped()) break;
    const bytes = await bytesOf(logDirectory(job));
    if (kept === 0 || kept + bytes <= logBytesMax || bytes <= NOTE_BYTES_MAX) {
      kept += bytes;
      continue;
    }
    await rm(logDirectory(job), { recursive: true, force: true });
    const size = `${Math.round(logBytesMax / 1024 ** 2)} MiB`;
    jobLog(job, `the former lines were removed: logs of newer jobs of ${api} take ${size} (--keep-logs)`);
    removed++;
  }
  return removed;
}

/** The ended jobs of an API that still have their data. */
async function* newestFirst(api: string, db: Database): AsyncGenerator<string> {
  const next = `SELECT job_id, end_time, pruned_time FROM jobs WHERE api_name = ? AND job_id < ?
    ORDER BY job_id DESC LIMIT ${AGED_JOBS_AT_ONCE}`;
  for (let before = "~"; ; ) {
    const jobs = await db.all<{ job_id: string; end_time: string | null; pruned_time: string | null }>(next, [
      api,
      before,
    ]);
    for (const { job_id, end_time, pruned_time } of jobs)
      if (end_time !== null && pruned_time === null) yield job_id;
    if (jobs.length < AGED_JOBS_AT_ONCE) return;
    before = jobs.at(-1)!.job_id;
  }
}

async function bytesOf(directory: string): Promise<number> {
  const names = await readdir(directory).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(directory, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
