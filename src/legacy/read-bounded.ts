/** Reads a file that user code may have made as large as it likes. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A file that was not read, because it has more bytes than asked for. */
export interface TooLong {
  bytes: number;
  changedMs: number;
}

/** Its text; undefined if it cannot be read. */
export async function readBounded(file: string, most: number): Promise<string | TooLong | undefined> {
  // A pipe in its place is not waited for.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  try {
    const stats = await handle?.stat();
    if (handle === undefined || stats?.isFile() !== true) return undefined;
    if (stats.size > most) return { bytes: stats.size, changedMs: stats.mtimeMs };
    return await textOf(handle, stats.size);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

/** No more than this size, even if the file grows. */
async function textOf(handle: FileHandle, size: number): Promise<string> {
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(buffer, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.toString("utf8", 0, length);
}
