/** Real paths: where a file or directory is once every symbolic link is followed. Access is decided by them alone. */
import { constants } from "node:fs";
import { type FileHandle, lstat, readlink, realpath } from "node:fs/promises";
import { dirname, resolve, sep } from "node:path";

/**
 * A listed file may have become a pipe. Opening it would block one of the few I/O threads until something writes to it.
 */
export const READ_AT_ONCE = constants.O_RDONLY | constants.O_NONBLOCK;
const IS_LINUX = process.platform === "linux";

/** The real path. If there is no such file, the path that it would have in its nearest existing directory. */
export async function realOrSelf(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined) return real;
  const parent = dirname(path);
  return parent === path
    ? path
    : resolve(await realOrSelf(parent), path.slice(parent.length).replace(/^\//, ""));
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
