/** A database for what is running: what the disk has no room for is written when it has. New things use the other one, and are refused. */
import { type RoomWait, whenThereIsRoom } from "../base/disk-full.ts";
import type { Database } from "./database.ts";

/** Transactions may run more than once: what they do to memory they must do behind their commit. */
export function patientDatabase(db: Database, wait: RoomWait): Database {
  return {
    all: (sql, params) => db.all(sql, params),
    run: (sql, params) => whenThereIsRoom(() => db.run(sql, params), wait),
    transaction: (work) => whenThereIsRoom(() => db.transaction(work), wait),
    close: () => db.close(),
  };
}
