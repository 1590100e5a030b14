/**
 * Keeps a log within its bounds although another process writes it. The content moves to `<file>.1`, whose first line
 * says how many bytes of the log were dropped before it. The writer keeps its descriptor, so the content is copied and
 * the file emptied. Workers do the same with what they print themselves (python/quern_runtime/log_file.py). A lock file
 * keeps the two apart.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { wallMs } from "../base/clock.ts";

const HEADER = /^\S+ quern: (\d+) bytes before this line were dropped[^\n]*\n/;
const HEADER_BYTES_MAX = 256;
const COPY_BYTES = 256 * 1024;
/** A rotation takes milliseconds. A process that holds the lock for longer was killed. */
const LOCK_STALE_MS = 10_000;

/** The position of the older file in the whole log. */
export interface OlderPart {
  /** Bytes of the log before this file. */
  dropped: number;
  /** Bytes of this file's first line. */
  headerBytes: number;
  size: number;
}

export function readOlderPart(file: string): OlderPart {
  try {
    const fd = openSync(`${file}.1`, "r");
    try {
      const start = Buffer.alloc(HEADER_BYTES_MAX);
      const found = HEADER.exec(start.toString("latin1", 0, readSync(fd, start, 0, start.length, 0)));
      const { size } = fstatSync(fd);
      return { dropped: Number(found?.[1] ?? 0), headerBytes: found?.[0].length ?? 0, size };
    } finally {
      closeSync(fd);
    }
  } catch {
    return { dropped: 0, headerBytes: 0, size: 0 };
  }
}

/** A piece of a log. */
export interface LogPart {
  /** The position of its first byte in the whole log. */
  from: number;
  bytes: Buffer;
}

/**
 * Up to `limit` bytes after position `at`, or from where the log begins now. Undefined while the log is being rotated.
 */
export function readPart(file: string, at: number, limit: number): LogPart | undefined {
  const older = readOlderPart(file);
  const middle = older.dropped + older.size - older.headerBytes;
  const from = Math.max(at, older.dropped);
  const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  // After the end: the log is new, or a flood was cut off that had been read already.
  const place = from > middle + size ? middle : from;
  const bytes =
    place < middle
      ? readAt(`${file}.1`, older.headerBytes + place - older.dropped, limit)
      : readAt(file, place - middle, limit);
  const after = readOlderPart(file);
  const isSame = after.dropped === older.dropped && after.size === older.size;
  return isSame && !isBeingRotated(file) ? { from: place, bytes } : undefined;
}

function readAt(file: string, offset: number, limit: number): Buffer {
  try {
    const fd = openSync(file, "r");
    try {
      const bytes = Buffer.allocUnsafe(Math.min(limit, Math.max(0, fstatSync(fd).size - offset)));
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, offset));
    } finally {
      closeSync(fd);
    }
  } catch {
    return Buffer.alloc(0);
  }
}

/** Whether a process rotates the log now. */
export function isBeingRotated(file: string): boolean {
  const lock = statSync(`${file}.lock`, { throwIfNoEntry: false });
  return lock !== undefined && Math.abs(wallMs() - lock.mtimeMs) < LOCK_STALE_MS;
}

/**
 * Moves the newest `keepBytes` of the log behind `fd` (opened "a+") to the older file. False if that was not possible
 * now.
 */
export function rotateLog(file: string, fd: number, keepBytes: number): boolean {
  const lock = `${file}.lock`;
  if (!isBeingRotated(file)) rmSync(lock, { force: true });
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch {
    return false;
  }
  try {
    moveToOlder(file, fd, keepBytes);
    return true;
  } catch {
    // The disk is full: nothing can be kept, and the bound still holds.
    rmSync(`${file}.1.new`, { force: true });
    ftruncateSync(fd, 0);
    return false;
  } finally {
    rmSync(lock, { force: true });
  }
}

function moveToOlder(file: string, fd: number, keepBytes: number): void {
  const older = readOlderPart(file);
  // Its content is dropped now, which frees disk space for the copy.
  rmSync(`${file}.1`, { force: true });
  const from = lineStart(fd, Math.max(0, fstatSync(fd).size - keepBytes));
  const dropped = older.dropped + older.size - older.headerBytes + from;
  const target = openSync(`${file}.1.new`, "w", 0o600);
  const enough = fstatSync(fd).size + 16 * COPY_BYTES;
  let end: number;
  try {
    writeSync(
      target,
      line(`${dropped} bytes before this line were dropped; a worker's log keeps its newest 8 to 16 MiB`),
    );
    end = copy(fd, from, target, enough);
    renameSync(`${file}.1.new`, `${file}.1`);
    // What was written meanwhile. It is often the last line, which says why a process ended.
    end = copy(fd, end, target, enough);
  } finally {
    closeSync(target);
  }
  const lost = fstatSync(fd).size - end;
  ftruncateSync(fd, 0);
  if (lost > 0)
    writeSync(fd, line(`${lost} bytes were dropped here; they came faster than a log can be rotated`));
}

/** The beginning of the first line at or after `at`; `at` itself if the next COPY_BYTES have none. */
function lineStart(fd: number, at: number): number {
  if (at === 0) return 0;
  const piece = Buffer.allocUnsafe(COPY_BYTES);
  const found = piece.subarray(0, readSync(fd, piece, 0, piece.length, at - 1)).indexOf(0x0a);
  return found === -1 ? at : at + found;
}

/** Copies to the end; a writer that is faster than this is cut off at `enough`. Returns the position reached. */
function copy(fd: number, from: number, target: number, enough: number): number {
  const piece = Buffer.allocUnsafe(COPY_BYTES);
  let at = from;
  while (at < enough) {
    const bytes = readSync(fd, piece, 0, piece.length, at);
    if (bytes === 0) break;
    writeSync(target, piece, 0, bytes);
    at += bytes;
  }
  return at;
}

function line(text: string): string {
  return `${new Date(wallMs()).toISOString()} quern: ${text}\n`;
}
