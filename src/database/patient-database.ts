/**
 * A database for work that is already running: if the disk is full or fails, it waits, and if the database cannot be
 * reached, too. New work uses the other database, and is refused.
 */
import { type DiskWait, whenDiskWorks } from "../base/disk-full.ts";
import type { Database } from "./database.ts";

/** Transactions may run more than once, so they must change memory only after their commit. */
export function patientDatabase(db: Database, wait: DiskWait): Database {
  const reached = db.patient?.(wait.signal) ?? db;
  return {
    all: (sql, params) => whenDiskWorks(() => reached.all(sql, params), wait),
    run: (sql, params) => whenDiskWorks(() => reached.run(sql, params), wait),
    transaction: (work) => whenDiskWorks(() => reached.transaction(work), wait),
    patient: (signal) => patientDatabase(db, { ...wait, signal }),
    close: () => db.close(),
  };
}
