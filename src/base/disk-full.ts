/** Detects from an error what the machine has run out of, and waits until it is available again. */
import { mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** No bytes, no inodes, or no quota of either is left. */
const DISK_CODES = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);
/** No file handle or no process is left. EAGAIN is the error when a process starts. */
const HANDLE_CODES = new Set(["EMFILE", "ENFILE", "EAGAIN"]);
const LOOK_AGAIN_MS = 1_000;

/** Disk: bytes, inodes or quota. Handles: files and processes. Undefined for every other error. */
export function shortageOf(error: unknown): "disk" | "handles" | undefined {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (DISK_CODES.has(String(code)) || /database or disk is full/.test(String(message))) return "disk";
  if (HANDLE_CODES.has(String(code))) return "handles";
  return cause === undefined ? undefined : shortageOf(cause);
}

/** In words, for a log. */
export function describeShortage(error: unknown): string {
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
}

/** Does `work`, and repeats it while the machine has run out of something. */
export async function whenDiskHasSpace<T>(work: () => Promise<T>, { onWait, signal }: DiskWait): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await work();
    } catch (error) {
      if (shortageOf(error) === undefined || signal.aborted) throw error;
      if (isFirst) onWait(error);
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }
}
