/** Detects from an error what the machine has run out of, or that its disk fails, and waits until it is as it should be. */
import { mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** No bytes, no inodes, or no quota of either is left. */
const DISK_CODES = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);
/** No file handle, process or thread is left. EAGAIN is the error when a process starts, the last one when a thread does. */
const HANDLE_CODES = new Set(["EMFILE", "ENFILE", "EAGAIN", "ERR_WORKER_INIT_FAILED"]);
/** The disk is broken, or mounted read-only. */
const FAULT_CODES = /^(EIO|EROFS|SQLITE_(IOERR|READONLY|CANTOPEN).*)$/;
/** The same, as node:sqlite says it (`errcode`, https://sqlite.org/rescode.html). */
const FAULT_ERRCODES = new Set([8, 10, 14]);
/** PostgreSQL: a right or a table is missing, its disk fails, its files are damaged. */
const DATABASE_CODES = /^(42501|42P01|58...|XX00[12])$/;
const LOOK_AGAIN_MS = 1_000;

/** The disk has less left than copies must leave (files/leave-free.ts). Counts as a full disk. */
export class DiskNearlyFull extends Error {
  readonly code = "ENOSPC";
}

/** Disk: bytes, inodes or quota. Handles: files and processes. Undefined for every other error. */
export function shortageOf(error: unknown): "disk" | "handles" | undefined {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (DISK_CODES.has(String(code)) || /database or disk is full/.test(String(message))) return "disk";
  if (HANDLE_CODES.has(String(code))) return "handles";
  return cause === undefined ? undefined : shortageOf(cause);
}

/** The disk or the database fails. A person must repair it, and what runs can wait for that. */
export function isFault(error: unknown): boolean {
  return faultyPart(error) !== undefined;
}

function faultyPart(error: unknown): "disk" | "database" | undefined {
  const { code, errcode, cause } = (error ?? {}) as { code?: unknown; errcode?: unknown; cause?: unknown };
  if (FAULT_CODES.test(String(code))) return "disk";
  if (typeof errcode === "number" && FAULT_ERRCODES.has(errcode & 0xff)) return "disk";
  if (DATABASE_CODES.test(String(code))) return "database";
  return cause === undefined ? undefined : faultyPart(cause);
}

/** What lacks and who waits for it, in words, for a log. */
export function describeWait(error: unknown, waits: string): string {
  const what = isFault(error) ? "it to work again" : "free resources";
  return `${describeShortage(error)}: ${waits} for ${what}`;
}

/** In words, for a log. */
export function describeShortage(error: unknown): string {
  const part = faultyPart(error);
  if (part !== undefined) return `the server's ${part} has an error (${(error as Error).message})`;
  if (error instanceof DiskNearlyFull) return error.message;
  return shortageOf(error) === "handles"
    ? "the server cannot open more files or start more processes"
    : "the server's disk is full";
}

/** Makes a directory and its parents. Node's own option (`recursive`) reports ENOENT if the disk has no inode left. */
export function makeDirectories(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    makeDirectories(dirname(path));
    mkdirSync(path, { recursive: true, mode: 0o700 });
  }
}

/** Opens a file that only its owner may read, and makes its directory if that is missing. Most directories are there. */
export function openInDirectory(file: string, flags: string): number {
  try {
    return openSync(file, flags, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    makeDirectories(dirname(file));
    return openSync(file, flags, 0o600);
  }
}

export interface DiskWait {
  /** Called once with the error, when waiting begins. */
  onWait: (error: unknown) => void;
  /** Aborted when nobody waits any more; the error is then thrown. */
  signal: AbortSignal;
  /** Has the error of each work that waits now. */
  waiting?: Set<unknown>;
}

/** Does `work`, and repeats it while the machine has run out of something. DiskNearlyFull is the caller's to wait for. */
export function whenDiskHasSpace<T>(work: () => Promise<T>, wait: DiskWait): Promise<T> {
  return repeated(work, wait, isAwaited);
}

/** The same as `whenDiskHasSpace` for work of jobs that run, which also waits while the disk or the database fails. */
export function whenDiskWorks<T>(work: () => Promise<T>, wait: DiskWait): Promise<T> {
  return repeated(work, wait, (error) => isAwaited(error) || isFault(error));
}

/** The same as `whenDiskWorks`, also while the disk has less left than must be left (DiskNearlyFull). */
export function whenDiskHasLeft<T>(work: () => Promise<T>, wait: DiskWait): Promise<T> {
  return repeated(work, wait, (error) => shortageOf(error) !== undefined || isFault(error));
}

function isAwaited(error: unknown): boolean {
  return shortageOf(error) !== undefined && !(error instanceof DiskNearlyFull);
}

async function repeated<T>(
  work: () => Promise<T>,
  { onWait, signal, waiting }: DiskWait,
  passes: (error: unknown) => boolean,
): Promise<T> {
  let former: unknown;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const result = await work();
      waiting?.delete(former);
      return result;
    } catch (error) {
      waiting?.delete(former);
      if (!passes(error) || signal.aborted) throw error;
      if (isFirst) onWait(error);
      waiting?.add(error);
      former = error;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }
}
