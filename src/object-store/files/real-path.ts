/** Real paths: where a file or directory is once every symbolic link is followed. Access is decided by them alone. */
import { constants } from "node:fs";
import { type FileHandle, lstat, readlink, realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";

/**
 * A listed file may have become a pipe. Opening it would block one of the few I/O threads until something writes to it.
 */
export const READ_AT_ONCE = constants.O_RDONLY | constants.O_NONBLOCK;
const IS_LINUX = process.platform === "linux";

/** The real path. If there is no such file, the path that it would have in its nearest existing directory. */
export async function realOrSelf(path: string): Promise<string> {
  const { real, missing } = await nearestExisting(path);
  return missing === "" ? real : resolve(real, missing);
}

/**
 * The real path of the file, or of its nearest existing directory, and what is missing below it. The directory is found
 * by bisection: if a path resolves, so do all directories that lead to it. 2,000 missing components take eleven calls of
 * the system; a call for each component made a turn of the event loop of 100 ms.
 */
export async function nearestExisting(path: string): Promise<{ real: string; missing: string }> {
  const whole = await realIfAny(path);
  if (whole !== undefined) return { real: whole, missing: "" };
  const ends = componentEnds(path);
  let nearest = { real: "/", end: 0 };
  for (let [from, to] = [0, ends.length]; from < to; ) {
    const middle = (from + to) >> 1;
    const end = ends[middle]!;
    const real = await realIfAny(path.slice(0, end));
    if (real === undefined) to = middle;
    else [nearest, from] = [{ real, end }, middle + 1];
  }
  return { real: nearest.real, missing: path.slice(nearest.end).replace(/^\/+/, "") };
}

/** Where each component of an absolute path ends, except the last. */
function componentEnds(path: string): number[] {
  const ends: number[] = [];
  for (const { index } of path.matchAll(/[^/](?=\/+[^/])/g)) ends.push(index + 1);
  return ends;
}

function realIfAny(path: string): Promise<string | undefined> {
  return realpath(path).catch(() => undefined);
}

/**
 * The real path of an opened file or directory; undefined if it cannot be determined. A path may change between link
 * and file while it is opened and resolved. So the path is read from the file descriptor where the system can.
 */
export async function realOfOpened(handle: FileHandle, path: string): Promise<string | undefined> {
  if (IS_LINUX) return readlink(openedFile(handle));
  const real = await realpath(path);
  const [opened, found] = await Promise.all([handle.stat({ bigint: true }), lstat(real, { bigint: true })]);
  return opened.ino === found.ino && opened.dev === found.dev ? real : undefined;
}

/** A path to the opened directory, even if `path` names another one by now; `path` if the system has no such paths. */
export function pathOfOpened(handle: FileHandle, path: string): string {
  return IS_LINUX ? openedFile(handle) : path;
}

/** Whether a real path is a directory, or is below it. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

function openedFile({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}
