/** What the machine has run out of, whoever says so, and waiting until there is some again. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** No bytes, no inodes, or no quota of either is left. */
const DISK_CODES = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);
/** No file handle is left, or no process: EAGAIN is what starting one says. */
const HANDLE_CODES = new Set(["EMFILE", "ENFILE", "EAGAIN"]);
const LOOK_AGAIN_MS = 1_000;

/** The disk (bytes, inodes or quota), or files and processes; undefined for every other error. */
export function shortageOf(error: unknown): "disk" | "handles" | undefined {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (DISK_CODES.has(String(code)) || /database or disk is full/.test(String(message))) return "disk";
  if (HANDLE_CODES.has(String(code))) return "handles";
  return cause === undefined ? undefined : shortageOf(cause);
}

/** In words, for a log. */
export function describeShortage(error: unknown): string {
  return shortageOf(error) === "handles"
    ? "the server may open no more files, or start no more processes"
    : "the server's disk is full";
}

/** Makes a directory and those above it. Node's own way (`recursive`) says ENOENT where the disk has no inode left. */
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

export interface RoomWait {
  /** Told once, when the waiting begins, with the error. */
  onWait: (error: unknown) => void;
  /** Aborted when nobody waits any more: the error is thrown then. */
  signal: AbortSignal;
}

/** Does `work`, again and again while the machine has run out of what it needs. */
export async function whenThereIsRoom<T>(work: () => Promise<T>, { onWait, signal }: RoomWait): Promise<T> {
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
