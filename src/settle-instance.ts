/**
 * Decides at a controller's start whether the data directory is the one that its database and its file name, and what becomes of workers and jobs
 * where it is a copy (docs/decisions/0016-instances.md).
 */
import { timestamp, wallMs } from "./base/clock.ts";
import { type RoomWait, whenThereIsRoom } from "./base/disk-full.ts";
import type { Log } from "./base/log.ts";
import { pauseAll, unpauseAll } from "./batch/paused-jobs.ts";
import type { Database } from "./database/database.ts";
import {
  newInstanceId,
  readInstance,
  recordedInstance,
  recordInstance,
  writeInstance,
} from "./database/instance.ts";
import { disownWorkers } from "./database/worker-records.ts";

export interface SettleOptions {
  dataDir: string;
  /** Jobs that were paused because of a copy go on. */
  continueJobs: boolean;
  db: Database;
  log: Log;
  room: RoomWait;
}

export interface SettledInstance {
  id: string;
  /** The database has known this directory before: what it does not know there is waste. */
  knowsFiles: boolean;
}

export async function settleInstance(options: SettleOptions): Promise<SettledInstance> {
  const { dataDir, continueJobs, db, room } = options;
  const found = readInstance(dataDir);
  const recorded = await recordedInstance(db);
  // A directory of a release without instances has neither; a database that was put back from before has none.
  const isCopy = found?.isCopy === true || (recorded !== "" && recorded !== found?.id);
  const id = isCopy || found === undefined ? newInstanceId() : found.id;
  const write = () => whenThereIsRoom(async () => writeInstance(dataDir, id), room);
  if (isCopy) {
    // The rows come first: a start that is cut off in between finds a copy again.
    await disown(options, id);
    await write();
  } else {
    if (found === undefined || found.isStale) await write();
    if (recorded !== id) await recordInstance(db, id);
  }
  if (continueJobs) await unpauseAll(db, wallMs());
  return { id, knowsFiles: recorded === id };
}

/** The workers in its rows are the original's; its jobs would write to the same outputs and queues. */
async function disown({ db, dataDir, continueJobs, log }: SettleOptions, id: string): Promise<void> {
  const paused = await db.transaction(async (tx) => {
    await recordInstance(tx, id);
    await disownWorkers(tx);
    return continueJobs ? 0 : pauseAll(tx, "copy", timestamp());
  });
  log.warn({ paused_jobs: paused }, `${dataDir} is a copy of another data directory, or was moved here`);
}
