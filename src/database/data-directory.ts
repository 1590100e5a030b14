/**
 * The data directory: mode 0700, one owner at a time. The lock is the kernel's, held through SQLite on a file of its
 * own: whoever is killed lets go of it at once.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { delay } from "../base/clock.ts";
import { openSqlite, type SqliteDriver } from "./sqlite-drivers.ts";

export interface DataDirectory {
  path: string;
  release(): void;
}

const RETRY_MS = 50;

/**
 * Makes and locks `path`. While `isHolderLeaving` says that the holder's parent is gone, waits up to `waitMs` for it;
 * otherwise a held lock is an error at once.
 */
export async function lockDataDirectory(
  path: string,
  parentPid: number,
  waitMs: number,
  isAlive: (pid: number) => boolean,
): Promise<DataDirectory> {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
  const holderFile = join(path, "lock.holder");
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = tryLock(join(path, "lock"));
    if (lock !== undefined) {
      writeFileSync(holderFile, String(parentPid), { mode: 0o600 });
      return { path, release: () => lock.close() };
    }
    const holder = Number(readIfThere(holderFile));
    if (performance.now() > deadline || (holder > 0 && holder !== parentPid && isAlive(holder))) {
      throw new Error(
        `the data directory ${path} is in use by the Quern with process id ${holder || "unknown"}: stop that one, or give another --data-dir`,
      );
    }
    await delay(RETRY_MS);
  }
}

function tryLock(file: string): SqliteDriver | undefined {
  const driver = openSqlite(file);
  try {
    driver.exec("PRAGMA busy_timeout = 0");
    driver.exec("PRAGMA journal_mode = DELETE");
    driver.exec("BEGIN EXCLUSIVE");
    return driver;
  } catch (error) {
    driver.close();
    if (/locked|busy/i.test((error as Error).message)) return undefined;
    throw error;
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** A place for files that need not outlive this process; what a former one left there goes. */
export function makeTemporaryDirectory(dataDir: string): string {
  const directory = join(dataDir, "temporary");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}
