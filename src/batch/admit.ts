/**
 * A running job leaves a part of the server's disk free: it waits before it writes more. While it pauses, less has to be
 * left, so that its batches in hand can end. A job that is to end does not wait, and its workers may send no more.
 */
import { DiskNearlyFull, whenDiskHasLeft } from "../base/disk-full.ts";
import { type Admit, leaveFree, OUTPUTS, type Part } from "../base/files/leave-free.ts";
import { first } from "../database/database.ts";
import type { RunOfJob } from "./phase.ts";

/** In the database's log of changes, and in the database. */
const COPIES_OF_A_ROW = 2;

type Run = Pick<RunOfJob, "deps" | "diskWait" | "isEnding" | "isPausing">;

export function admitOf(run: Run): Admit {
  return (...asked) => whenDiskHasLeft(() => look(run, ...asked), run.diskWait);
}

/** The same for rows of the database: pages of its file that are free may take them, however full the disk is. */
export function admitRowsOf(run: Run): Admit {
  const { deps, diskWait } = run;
  if (!deps.isOnDisk.database) return async () => true;
  const lookAtPages = async (bytes: number, part: Part) =>
    (await freePageBytes(run)) >= bytes || look(run, COPIES_OF_A_ROW * bytes, part);
  return (...asked) => whenDiskHasLeft(() => lookAtPages(...asked), diskWait);
}

async function look(run: Run, ...asked: Parameters<Admit>): Promise<boolean> {
  const [bytes, part] = run.isPausing ? [0, OUTPUTS] : asked;
  try {
    await leaveFree(run.deps.dataDir, bytes, part);
    return true;
  } catch (error) {
    if (run.isEnding && error instanceof DiskNearlyFull) return false;
    throw error;
  }
}

/** https://www.sqlite.org/pragma.html#pragma_freelist_count */
async function freePageBytes({ deps: { db } }: Run): Promise<number> {
  const free = await first<{ freelist_count: number }>(db, "PRAGMA freelist_count");
  const page = await first<{ page_size: number }>(db, "PRAGMA page_size");
  return (free?.freelist_count ?? 0) * (page?.page_size ?? 0);
}
