/**
 * The database port on SQLite, with every pragma set explicitly. It waits for another process's lock without blocking
 * the event loop.
 */
import { setTimeout as pause } from "node:timers/promises";
import { LOCK_RETRY_FIRST_MS, LOCK_RETRY_MAX_MS, LOCK_TOLD_MS } from "../contracts/limits/database.ts";
import type { Database, SqlValue } from "./database.ts";
import { SerialDatabase } from "./serial-database.ts";
import { openSqlite } from "./sqlite-drivers.ts";

/** FULL survives a power cut; with group commit it costs nothing visible (docs/decisions/0003-sqlite.md). */
const PRAGMAS = [
  // SQLite waits by sleeping, which blocks everything else. So we wait ourselves (`whenUnlocked`).
  "busy_timeout = 0",
  "journal_mode = WAL",
  "synchronous = FULL",
  "foreign_keys = ON",
  "temp_store = MEMORY",
  "cache_size = -8000",
  "wal_autocheckpoint = 1000",
];
const SQLITE_BUSY = 5;

/** Called once when the wait for a lock exceeds LOCK_TOLD_MS, and once when that wait ends. */
export type OnLocked = (state: { isOver: boolean; waitedMs: number }) => void;

export function openSqliteDatabase(file: string, onLocked: OnLocked = () => {}): Database {
  const driver = openSqlite(file);
  try {
    for (const pragma of PRAGMAS) driver.exec(`PRAGMA ${pragma}`);
  } catch (error) {
    driver.close();
    throw error;
  }
  const connection = {
    all: <T>(sql: string, params: readonly SqlValue[] = []) =>
      whenUnlocked(() => driver.all(sql, params) as T[], onLocked),
    run: (sql: string, params: readonly SqlValue[] = []) =>
      whenUnlocked(() => driver.run(sql, params), onLocked),
    exec: (sql: string) => whenUnlocked(() => driver.exec(sql), onLocked),
    close: async () => driver.close(),
  };
  return new SerialDatabase(connection, "BEGIN IMMEDIATE");
}

/** A statement that found the lock taken has changed nothing. It is tried again, for as long as it takes. */
async function whenUnlocked<T>(work: () => T, onLocked: OnLocked): Promise<T> {
  try {
    return work();
  } catch (error) {
    if (!isLocked(error)) throw error;
    return waitForLock(work, onLocked);
  }
}

async function waitForLock<T>(work: () => T, onLocked: OnLocked): Promise<T> {
  const startedMs = performance.now();
  let isTold = false;
  for (let waitMs = LOCK_RETRY_FIRST_MS; ; waitMs = Math.min(LOCK_RETRY_MAX_MS, 2 * waitMs)) {
    await pause(waitMs);
    const waitedMs = performance.now() - startedMs;
    try {
      const result = work();
      if (isTold) onLocked({ isOver: true, waitedMs });
      return result;
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (!isTold && waitedMs > LOCK_TOLD_MS) onLocked({ isOver: false, waitedMs });
      isTold ||= waitedMs > LOCK_TOLD_MS;
    }
  }
}

/** As node:sqlite reports it (`errcode`, with details in the upper bits), and as better-sqlite3 does. */
function isLocked(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return typeof errcode === "number" ? (errcode & 0xff) === SQLITE_BUSY : /^SQLITE_BUSY/.test(String(code));
}
