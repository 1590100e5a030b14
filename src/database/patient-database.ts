/**
 * A database for work that is already running: if the disk is full, writes wait for space. New work uses the other
 * database, and is refused.
 */
import { type DiskWait, whenDiskHasSpace } from "../base/disk-full.ts";
import type { Database } from "./database.ts";

/** Transactions may run more than once, so they must change memory only after their commit. */
export function patientDatabase(db: Database, wait: DiskWait): Database {
  return {
    all: (sql, params) => db.all(sql, params),
    run: (sql, params) => whenDiskHasSpace(() => db.run(sql, params), wait),
    transaction: (work) => whenDiskHasSpace(() => db.transaction(work), wait),
    close: () => db.close(),
  };
}
