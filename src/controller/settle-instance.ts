/**
 * Decides when a controller starts whether the data directory is a copy: whether its database and its file name the
 * same instance. Then decides about the workers and jobs of a copy (docs/decisions/0016-instances.md).
 */
import { timestamp, wallMs } from "../base/clock.ts";
import { type DiskWait, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Log } from "../base/log.ts";
import { pauseCopied, unpause } from "../batch/records/paused-jobs.ts";
import type { Database } from "../database/database.ts";
import { type Instance, newInstanceId, readInstance, writeInstance } from "../database/instance.ts";
import { recordedInstance, recordInstance } from "../database/owner-row.ts";
import { disownWorkers } from "../database/worker-rows.ts";

export interface SettleOptions {
  dataDir: string;
  /** Continues jobs that were paused because the directory is a copy. */
  continueJobs: boolean;
  /** The directory is a cache of a state in an object store: its instance is that of the database. */
  isCache: boolean;
  db: Database;
  log: Log;
  diskWait: DiskWait;
}

export interface SettledInstance {
  id: string;
  /** The database already belonged to this directory. So files that it does not know can be removed. */
  knowsFiles: boolean;
}

export async function settleInstance(options: SettleOptions): Promise<SettledInstance> {
  const { dataDir, continueJobs, db, diskWait } = options;
  const found = readInstance(dataDir);
  const recorded = await recordedInstance(db);
  if (options.isCache && recorded !== "") return settleCache(options, found, recorded);
  // A directory of a release without instances has neither id. A restored older database has none.
  const isCopy = found?.isCopy === true || (recorded !== "" && recorded !== found?.id);
  const id = isCopy || found === undefined ? newInstanceId() : found.id;
  const write = (formerId?: string) =>
    whenDiskHasSpace(async () => writeInstance(dataDir, id, formerId), diskWait);
  if (isCopy) {
    // The id in the database comes last: if this start is interrupted, the next one finds two ids, and does this again.
    await disown(options);
    await write(recorded);
    await recordInstance(db, id);
    await write();
  } else {
    if (found === undefined || found.isStale) await write();
    if (recorded !== id) await recordInstance(db, id);
  }
  if (continueJobs) await db.transaction((tx) => unpause(tx, { causes: ["copy"] }, wallMs()));
  return { id, knowsFiles: recorded === id };
}

/** A cache that was copied or moved is still one of the same state. Its workers are those of the database. */
async function settleCache(
  { dataDir, continueJobs, db, diskWait }: SettleOptions,
  found: Instance | undefined,
  id: string,
): Promise<SettledInstance> {
  if (found?.id !== id || found.isCopy || found.isStale)
    await whenDiskHasSpace(async () => writeInstance(dataDir, id), diskWait);
  if (continueJobs) await db.transaction((tx) => unpause(tx, { causes: ["copy"] }, wallMs()));
  return { id, knowsFiles: true };
}

/**
 * The workers in the copied rows belong to the original. The copied jobs would write to the original's outputs and
 * queues.
 */
async function disown({ db, dataDir, continueJobs, log }: SettleOptions): Promise<void> {
  const paused = await db.transaction(async (tx) => {
    await disownWorkers(tx);
    return continueJobs ? 0 : pauseCopied(tx, timestamp());
  });
  log.warn(
    { event: "data_directory_copied", paused_jobs: paused },
    `${dataDir} is a copy of another data directory, or was moved here`,
  );
}
