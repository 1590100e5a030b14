/**
 * Bounds the logs of the jobs of each API (docs/contract/operations.md#log-total): those of ended jobs go, the oldest
 * first, but never those of the newest. A job's own logs are bounded (contracts/limits/logs.ts), but an API may have
 * thousands of jobs.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { reportFault } from "../../base/boundary.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import { AGED_JOBS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import { type Database, first } from "../../database/database.ts";

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
  for (const { name } of apis) if (!isStopped()) removed += await boundLogsOf(name, options, isStopped);
  return removed;
}

async function boundLogsOf(
  api: string,
  options: BoundLogsOptions,
  isStopped: () => boolean,
): Promise<number> {
  const { db, logDirectory, logBytesMax } = options;
  let [kept, removed] = [0, 0];
  for await (const jobs of newestFirst(api, db)) {
    for (const job of jobs) {
      const bytes = await bytesOf(logDirectory(job));
      const isKept = kept === 0 || kept + bytes <= logBytesMax || bytes <= NOTE_BYTES_MAX;
      if (!isKept && (await removeLogs(job, api, options))) removed++;
      else kept += bytes;
    }
    if (isStopped()) break;
  }
  return removed;
}

/** False if a new round of the job has begun meanwhile, or its logs cannot be removed. */
async function removeLogs(
  job: string,
  api: string,
  { db, logDirectory, jobLog, logBytesMax }: BoundLogsOptions,
): Promise<boolean> {
  const hasEnded = "SELECT job_id FROM jobs WHERE job_id = ? AND end_time IS NOT NULL";
  if ((await first(db, hasEnded, [job])) === undefined) return false;
  try {
    await removeTree(logDirectory(job));
  } catch (error) {
    reportFault(error, `the logs of job ${job}`);
    return false;
  }
  const size = `${Math.round(logBytesMax / 1024 ** 2)} MiB`;
  jobLog(job, `the former lines were removed: logs of newer jobs of ${api} take ${size} (--keep-logs)`);
  return true;
}

/** The ended jobs of an API that still have their data, in pages. */
async function* newestFirst(api: string, db: Database): AsyncGenerator<string[]> {
  const next = `SELECT job_id, end_time, pruned_time FROM jobs WHERE api_name = ? AND job_id < ?
    ORDER BY job_id DESC LIMIT ${AGED_JOBS_AT_ONCE}`;
  for (let before = "~"; ; ) {
    const jobs = await db.all<{ job_id: string; end_time: string | null; pruned_time: string | null }>(next, [
      api,
      before,
    ]);
    const ended = jobs.filter(({ end_time, pruned_time }) => end_time !== null && pruned_time === null);
    yield ended.map(({ job_id }) => job_id);
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
