/** Reads a file that user code may have made as large as it likes. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** A file that was not read, because it has more bytes than asked for. */
export interface TooLong {
  bytes: number;
  changedMs: number;
}

/**
 * Its text; undefined if it cannot be read. It blocks: a small file takes ten microseconds, and through Node's four
 * threads, which are there for everybody, ten times as long.
 */
export function readBounded(file: string, most: number): string | TooLong | undefined {
  let fd: number | undefined;
  try {
    // A pipe in its place is not waited for.
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile()) return undefined;
    if (stats.size > most) return { bytes: stats.size, changedMs: stats.mtimeMs };
    return textOf(fd, stats.size);
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** No more than this size, even if the file grows. */
function textOf(fd: number, size: number): string {
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const bytesRead = readSync(fd, buffer, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.toString("utf8", 0, length);
}
