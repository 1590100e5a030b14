/**
 * The data directory: mode 0700, one owner at a time. The lock is the kernel's, held through SQLite on a separate file,
 * so a killed process releases it at once.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { delay } from "../base/clock.ts";
import { shortageOf } from "../base/disk-full.ts";
import { bootId } from "../base/process-identity.ts";
import { CannotStart, isNotForUs } from "../contracts/cannot-start.ts";
import {
  applicationsDirectory,
  instanceFile,
  jobsDirectory,
  lockFile,
  lockOwnerFile,
  projectsDirectory,
  temporaryDirectory,
} from "../contracts/data-layout.ts";
import { openSqlite, type SqliteDriver } from "./sqlite-drivers.ts";

export interface DataDirectory {
  path: string;
  release(): void;
}

const RETRY_MS = 50;
/** Directories whose content only the database can distinguish from waste. */
const KNOWN_BY_DATABASE = [jobsDirectory, projectsDirectory, applicationsDirectory];

/**
 * Makes and locks `path`. If the lock is held and the holder's parent is alive, throws at once. If that parent is dead,
 * unknown or our own, the holder is leaving: waits up to `waitMs` for it.
 */
export async function lockDataDirectory(
  path: string,
  parentPid: number,
  waitMs: number,
  isAlive: (pid: number) => boolean,
): Promise<DataDirectory> {
  makeOwn(path);
  const ownerFile = lockOwnerFile(path);
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = tryLock(lockFile(path));
    if (lock !== undefined) {
      noteOwner(ownerFile, parentPid);
      return { path, release: () => lock.close() };
    }
    const owner = Number(readIfThere(ownerFile));
    const message = `the data directory ${path} is in use by the Quern with process id ${owner || "unknown"}: stop that one, or give another --data-dir`;
    if (owner > 0 && owner !== parentPid && isAlive(owner))
      throw new CannotStart("data_directory_in_use", message);
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
    const message = `the data directory ${path} cannot be used: ${(error as Error).message}; make the user that runs Quern its owner, or give another --data-dir`;
    throw new CannotStart("data_directory_unusable", message, error);
  }
}

/**
 * For the messages of processes that find the directory in use. A rename puts the file in place, so it is never half
 * written. If the disk is full there is no file, because the one before names another process.
 */
function noteOwner(file: string, pid: number): void {
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

/**
 * Identifies a locked data directory among those of all machines. It changes with each boot, and when the directory is
 * moved.
 */
export function directoryIdentity(path: string): string {
  const { dev, ino } = statSync(lockFile(path));
  const parts = [bootId() ?? hostname(), dev, ino, path];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** A directory for files that need not outlive this process. Files that a former process left there are removed. */
export function makeTemporaryDirectory(dataDir: string): string {
  const directory = temporaryDirectory(dataDir);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

/** The first path that only exists if a database has existed beside it. */
export function dataBeside(dataDir: string): string | undefined {
  const files = filesBeside(dataDir);
  if (files !== undefined) return files;
  const instance = instanceFile(dataDir);
  return existsSync(instance) ? instance : undefined;
}

/** The first directory with files that a database names. */
export function filesBeside(dataDir: string): string | undefined {
  for (const directoryOf of KNOWN_BY_DATABASE) {
    const path = directoryOf(dataDir);
    if (entriesOf(path).length > 0) return path;
  }
  return undefined;
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
