/**
 * An opened directory in which files are written. It is checked once it is open, and all names are resolved from it: a
 * directory that is replaced by a link meanwhile leads nowhere else. Missing directories are made.
 */
import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { AllowedPaths } from "./allowed-paths.ts";
import { nearestExisting, pathOfOpened, realOfOpened, realOrSelf } from "./real-path.ts";

/** The directory can be made. */
const MISSING: ReadonlySet<string> = new Set(["ENOENT"]);
/** There is no such directory, also because a file is in its place. */
const NOT_THERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR"]);
/** A name of most file systems. A longer one below a missing directory is not noticed by the system. */
const NAME_BYTES_MAX = 255;
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY;

export class WritableDirectory {
  /** Its real path when it was opened. */
  readonly real: string;
  private readonly handle: FileHandle;

  private constructor(handle: FileHandle, real: string) {
    this.handle = handle;
    this.real = real;
  }

  /**
   * A missing directory is made, or undefined, or the nearest existing one stands for it. `given`: the address that
   * errors show. Throws `path_not_allowed`, or the system's error.
   */
  static async open<T extends "made" | "nearest" | "existing">(
    path: string,
    missing: T,
    allowed: AllowedPaths,
    given: string,
  ): Promise<WritableDirectory | (T extends "existing" ? undefined : never)> {
    // Before anything is made or opened. Later checks are of what was opened.
    allowed.assertHas(await realOrSelf(path), given, "write");
    const found = await openExisting(path, allowed, given, missing === "existing" ? NOT_THERE : MISSING);
    if (found !== undefined || missing === "existing") return found as WritableDirectory;
    return missing === "made" ? make(path, allowed, given) : openNearest(path, allowed, given);
  }

  /** Takes over the handle. */
  static async of(handle: FileHandle, path: string, allowed: AllowedPaths, given: string) {
    try {
      const real = await realOfOpened(handle, path);
      allowed.assertHas(real, given, "write");
      return new WritableDirectory(handle, real!);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** A path to the file of this name, which leads through the opened directory. */
  at(name: string): string {
    return join(pathOfOpened(this.handle, this.real), name);
  }

  /** Makes the names in it durable. */
  sync(): Promise<void> {
    return this.handle.sync();
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** `absent`: the codes of errors for which it resolves to undefined. */
async function openExisting(
  path: string,
  allowed: AllowedPaths,
  given: string,
  absent = MISSING,
): Promise<WritableDirectory | undefined> {
  const handle = await open(path, DIRECTORY).catch((error: NodeJS.ErrnoException) => {
    if (!absent.has(error.code ?? "")) throw error;
    return undefined;
  });
  return handle && WritableDirectory.of(handle, path, allowed, given);
}

/** The nearest existing directory in which this one could be made. */
async function openNearest(path: string, allowed: AllowedPaths, given: string): Promise<WritableDirectory> {
  const { real, missing } = await nearestExisting(path);
  const isTooLong = (name: string) => Buffer.byteLength(name) > NAME_BYTES_MAX;
  if (missing.split("/").some(isTooLong))
    throw Object.assign(new Error(`a name in ${given} is too long`), { code: "ENAMETOOLONG" });
  return WritableDirectory.of(await open(real, DIRECTORY), real, allowed, given);
}

/** Makes the directory, and those above it that are missing, from the nearest existing one down. */
async function make(path: string, allowed: AllowedPaths, given: string): Promise<WritableDirectory> {
  const { real, missing } = await nearestExisting(path);
  let directory = await WritableDirectory.of(await open(real, DIRECTORY), real, allowed, given);
  for (const name of missing.split("/").filter(Boolean))
    directory = await makeIn(directory, name, allowed, given);
  return directory;
}

/** Closes `parent`. */
async function makeIn(
  parent: WritableDirectory,
  name: string,
  allowed: AllowedPaths,
  given: string,
): Promise<WritableDirectory> {
  try {
    await mkdir(parent.at(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    await parent.sync();
    const made = await open(parent.at(name), DIRECTORY | constants.O_NOFOLLOW);
    return await WritableDirectory.of(made, join(parent.real, name), allowed, given);
  } finally {
    await parent.close();
  }
}
