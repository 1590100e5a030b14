/** Whether a directory's disk is full. */
import { statfs } from "node:fs/promises";

/** Less is full: a commit of the database and its log take up to about so much. */
const BYTES_LEAST = 1024 * 1024;

/** Bytes that this user may still write to the directory's disk. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** In words: why nothing can be written to the directory; undefined if there is space. */
export async function describeFullDisk(directory: string): Promise<string | undefined> {
  const { bavail, bsize, files, ffree } = await statfs(directory);
  const free = bavail * bsize;
  if (free < BYTES_LEAST) return `the disk of ${directory} is full: ${free} bytes are free`;
  // Some file systems have no number of inodes.
  if (files > 0 && ffree === 0)
    return `the disk of ${directory} is full: it has no inode left for another file`;
  return undefined;
}
