/**
 * The data directory: mode 0700, one owner at a time. The lock is the kernel's, held through SQLite on a file of its
 * own: whoever is killed lets go of it at once.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { delay } from "../base/clock.ts";
import { shortageOf } from "../base/disk-full.ts";
import { CannotStart, isNotForUs } from "../contracts/cannot-start.ts";
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
  makeOwn(path);
  const holderFile = join(path, "lock.holder");
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = tryLock(join(path, "lock"));
    if (lock !== undefined) {
      noteHolder(holderFile, parentPid);
      return { path, release: () => lock.close() };
    }
    const holder = Number(readIfThere(holderFile));
    const message = `the data directory ${path} is in use by the Quern with process id ${holder || "unknown"}: stop that one, or give another --data-dir`;
    if (holder > 0 && holder !== parentPid && isAlive(holder))
      throw new CannotStart("data_directory_in_use", message);
    // Its parent is dead: it is leaving.
    if (performance.now() > deadline) throw new Error(message);
    await delay(RETRY_MS);
  }
}

function makeOwn(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
  } catch (error) {
    if (!isNotForUs(error)) throw error;
    const message = `the data directory ${path} cannot be used: ${(error as Error).message}; give it to the user that runs Quern, or give another --data-dir`;
    throw new CannotStart("data_directory_unusable", message, error);
  }
}

/** For the words of others that find it in use. It is renamed into place: a disk without room leaves the one before, not half of one. */
function noteHolder(file: string, pid: number): void {
  try {
    writeFileSync(`${file}.new`, String(pid), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    if (shortageOf(error) === undefined) throw error;
    rmSync(file, { force: true });
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
