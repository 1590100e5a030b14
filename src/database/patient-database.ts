/**
 * A database for work that is already running: if the disk is full, writes wait for space, and if the database cannot be
 * reached, everything waits for it. New work uses the other database, and is refused.
 */
import { type DiskWait, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Database } from "./database.ts";

/** Transactions may run more than once, so they must change memory only after their commit. */
export function patientDatabase(db: Database, wait: DiskWait): Database {
  const reached = db.patient?.(wait.signal) ?? db;
  return {
    all: (sql, params) => reached.all(sql, params),
    run: (sql, params) => whenDiskHasSpace(() => reached.run(sql, params), wait),
    transaction: (work) => whenDiskHasSpace(() => reached.transaction(work), wait),
    patient: (signal) => patientDatabase(db, { ...wait, signal }),
    close: () => db.close(),
  };
}
