/**
 * Walks a directory and those below it, and finds the files under a prefix, in the order of their full paths. A link to
 * a file inside a root is listed, a link to a directory is not followed. Files that are being written are left out.
 */
import { isUtf8 } from "node:buffer";
import { constants, type Dir, type Dirent } from "node:fs";
import { open, opendir, realpath, stat } from "node:fs/promises";
import { ServiceError } from "../../contracts/errors.ts";
import { isTemporaryName } from "../own-names.ts";
import type { AllowedPaths } from "./allowed-paths.ts";
import { pathOfOpened, READ_AT_ONCE, realOfOpened } from "./real-path.ts";
import { sortedNames } from "./sorted-names.ts";

/** Names read from a directory at once. */
const DIRECTORY_BUFFER = 512;
/** There is no such directory. ENAMETOOLONG: no file system accepts the name. */
const NOT_THERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

interface DirectoryWalkOptions {
  /** Only files whose path begins so. */
  prefix: string;
  /** The directory that the walk does not enter. */
  closed: string | undefined;
  allowed: AllowedPaths;
  /** Large directories are sorted with files in it. */
  temporaryDirectory: string;
  /** Aborted when nobody wants the rest. */
  signal: AbortSignal | undefined;
}

export class DirectoryWalk {
  /** These two have one character a byte, like names. */
  private readonly prefix: string;
  private readonly closed: string | undefined;
  private readonly allowed: AllowedPaths;
  private readonly temporaryDirectory: string;
  private readonly signal: AbortSignal | undefined;

  constructor({ prefix, closed, allowed, temporaryDirectory, signal }: DirectoryWalkOptions) {
    this.prefix = bytesOf(prefix);
    this.closed = closed === undefined ? undefined : bytesOf(`${closed}/`);
    this.allowed = allowed;
    this.temporaryDirectory = temporaryDirectory;
    this.signal = signal;
  }

  /** Pages of files. A directory sorts as its name with `/`, so that the order is that of the full keys. */
  async *pages(directory: string): AsyncGenerator<string[]> {
    const base = directory.endsWith("/") ? directory : `${directory}/`;
    for await (const names of sortedNames(this.entries(base), this.temporaryDirectory)) {
      let files: string[] = [];
      for (const name of names) {
        const path = base + decodeName(name);
        if (!name.endsWith("/")) files.push(path);
        else {
          if (files.length > 0) yield files;
          files = [];
          yield* this.pages(path);
        }
      }
      if (files.length > 0) yield files;
    }
  }

  /** Names in `base` that may lead to files with the prefix, in the directory's own order; directories end in `/`. */
  private async *entries(base: string): AsyncGenerator<string> {
    const { prefix, closed } = this;
    const directory = await this.openDirectory(base).catch((error: NodeJS.ErrnoException) => {
      if (NOT_THERE.has(error.code ?? "")) return undefined;
      throw unreadable(base, error);
    });
    const start = bytesOf(base);
    for await (const entry of directory ?? []) {
      this.signal?.throwIfAborted();
      const isDirectory = entry.isDirectory();
      const name = isDirectory ? `${entry.name}/` : entry.name;
      // By its bytes, because only a name that is selected must be UTF-8.
      const path = start + name;
      if (isDirectory && path === closed) continue;
      if (!isDirectory && isTemporaryName(entry.name)) continue;
      const mayMatch = path.startsWith(prefix) || (isDirectory && prefix.startsWith(path));
      if (mayMatch && (isDirectory || (await this.isListed(entry, base + decodeName(name))))) yield name;
    }
  }

  /** Undefined if it has become a link out of the roots. */
  private async openDirectory(base: string): Promise<Dir | undefined> {
    const handle = await open(base, READ_AT_ONCE | constants.O_DIRECTORY);
    try {
      const real = await realOfOpened(handle, base);
      if (real === undefined || !this.allowed.has(real)) return undefined;
      return await opendir(pathOfOpened(handle, base), {
        encoding: "latin1" as BufferEncoding,
        bufferSize: DIRECTORY_BUFFER,
      });
    } finally {
      await handle.close();
    }
  }

  private async isListed(entry: Dirent, path: string): Promise<boolean> {
    if (entry.isFile()) return true;
    if (!entry.isSymbolicLink()) return false;
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined || !this.allowed.has(real)) return false;
    return (await stat(real)).isFile();
  }
}

function bytesOf(path: string): string {
  return Buffer.from(path).toString("latin1");
}

/** A name as latin1 has one character a byte; nearly all names are plain ASCII. Throws if it is not UTF-8. */
function decodeName(name: string): string {
  if (!/[\x80-\xff]/.test(name)) return name;
  const bytes = Buffer.from(name, "latin1");
  if (isUtf8(bytes)) return bytes.toString("utf8");
  const message = `a file's name is not valid UTF-8: ${JSON.stringify(bytes.toString("utf8"))}; rename it`;
  throw new ServiceError("invalid_request", message);
}

function unreadable(directory: string, error: NodeJS.ErrnoException): Error {
  if (error.code !== "EACCES" && error.code !== "EPERM") return error;
  const message = `this server may not read ${directory} (${error.code}); give its user permission to read it, or leave the directory out`;
  return new ServiceError("store_forbidden", message, { cause: error });
}
