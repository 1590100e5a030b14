/**
 * `file://` under the roots that the operator allows. Access is checked on the opened file or directory, so that no
 * symbolic link leads out (docs/contract/submitting.md#links-stay-inside). A link to a file inside a root is listed, a
 * link to a directory is not followed. The server's data directory is excluded from every root, by its real path.
 */
import { isUtf8 } from "node:buffer";
import type { BigIntStats, Dir, Dirent } from "node:fs";
import { constants, fstatSync, statSync } from "node:fs";
import { type FileHandle, lstat, open, opendir, readlink, realpath, stat } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../contracts/errors.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  type ObjectStore,
  type OpenObject,
} from "../object-store.ts";
import { fileAddress, localPath } from "../store-path.ts";
import { sortedNames } from "./sorted-names.ts";

/** Names read from a directory at once. */
const DIRECTORY_BUFFER = 512;
/**
 * A listed file may have become a pipe. Opening it would block one of the few I/O threads until something writes to it.
 */
const READ_AT_ONCE = constants.O_RDONLY | constants.O_NONBLOCK;
const IS_LINUX = process.platform === "linux";
/** There is no such directory. ENAMETOOLONG: no file system accepts the name. */
const NOT_THERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

export class FileStore implements ObjectStore {
  private readonly roots: readonly string[];
  private readonly temporaryDirectory: string;
  private readonly closed: string;

  /**
   * `roots` and `closed`: real paths of absolute directories; `closed` may not be read. Large directories are sorted
   * with files in the temporary directory.
   */
  constructor(roots: readonly string[], temporaryDirectory: string, closed: string) {
    this.roots = roots;
    this.temporaryDirectory = temporaryDirectory;
    this.closed = closed;
  }

  /** One, because a directory's names are in memory while it is listed, and there is no network to wait for. */
  parallelListings(): number {
    return 1;
  }

  async *list(prefix: string, { sizes, after }: ListOptions): AsyncGenerator<ListedObject[]> {
    const path = localPath(prefix);
    const isRoot = this.isRoot(await realOrSelf(path));
    const directory = isRoot || path.endsWith("/") ? path.replace(/(?!^)\/$/, "") : dirname(path);
    const real = await realOrSelf(directory);
    this.assertAllowed(real, prefix);
    // The data directory's path as a walk from `directory` reaches it; the walk follows no links.
    const closed = isInside(this.closed, real) ? resolve(directory, relative(real, this.closed)) : undefined;
    const wanted = isRoot && !path.endsWith("/") ? `${path}/` : path;
    const describe = (file: string): ListedObject => ({
      path: fileAddress(file),
      bytes: sizes ? (statSync(file, { throwIfNoEntry: false })?.size ?? 0) : undefined,
    });
    const last = after === undefined ? undefined : Buffer.from(localPath(after));
    const isBehind = (file: string) => last === undefined || Buffer.compare(Buffer.from(file), last) > 0;
    for await (const page of this.walk(directory, { prefix: wanted, closed })) {
      const behind = last === undefined ? page : page.filter(isBehind);
      if (behind.length > 0) yield behind.map(describe);
      // Without this, pages of names in memory would follow each other without a pause.
      await nextTurn();
    }
  }

  async open(path: string): Promise<OpenObject> {
    const local = localPath(path);
    const handle = await open(local, READ_AT_ONCE);
    try {
      const info = await handle.stat({ bigint: true });
      const real = await realOfOpened(handle, local);
      if (real === undefined) throw outside(path, this.roots);
      this.assertAllowed(real, path);
      if (!info.isFile()) throw new ObjectChanged(path);
      return new OpenFile(path, handle, info);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Pages of files. A directory sorts as its name with `/`, so that the order is that of the full keys. */
  private async *walk(directory: string, wanted: Wanted): AsyncGenerator<string[]> {
    const base = directory.endsWith("/") ? directory : `${directory}/`;
    for await (const names of sortedNames(this.entries(base, wanted), this.temporaryDirectory)) {
      let files: string[] = [];
      for (const name of names) {
        const path = base + decodeName(name);
        if (!name.endsWith("/")) files.push(path);
        else {
          if (files.length > 0) yield files;
          files = [];
          yield* this.walk(path, wanted);
        }
      }
      if (files.length > 0) yield files;
    }
  }

  /** Names in `base` that may lead to files with the prefix, in the directory's own order; directories end in `/`. */
  private async *entries(base: string, { prefix, closed }: Wanted): AsyncGenerator<string> {
    const directory = await this.openDirectory(base).catch((error: NodeJS.ErrnoException) => {
      if (NOT_THERE.has(error.code ?? "")) return undefined;
      throw unreadable(base, error);
    });
    for await (const entry of directory ?? []) {
      const isDirectory = entry.isDirectory();
      const name = isDirectory ? `${entry.name}/` : entry.name;
      const path = base + decodeName(name);
      if (isDirectory && closed !== undefined && path === `${closed}/`) continue;
      const mayMatch = path.startsWith(prefix) || (isDirectory && prefix.startsWith(path));
      if (mayMatch && (isDirectory || (await this.isListed(entry, path)))) yield name;
    }
  }

  /** Undefined if it has become a link out of the roots. */
  private async openDirectory(base: string): Promise<Dir | undefined> {
    const handle = await open(base, READ_AT_ONCE | constants.O_DIRECTORY);
    try {
      const real = await realOfOpened(handle, base);
      if (real === undefined || !this.isAllowed(real)) return undefined;
      const opened = IS_LINUX ? openedFile(handle) : base;
      return await opendir(opened, {
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
    if (real === undefined || !this.isAllowed(real)) return false;
    return (await stat(real)).isFile();
  }

  private isRoot(real: string): boolean {
    return this.roots.includes(real);
  }

  private isAllowed(real: string): boolean {
    return !isInside(real, this.closed) && this.roots.some((root) => isInside(real, root));
  }

  private assertAllowed(real: string, given: string): void {
    if (isInside(real, this.closed)) throw inDataDirectory(given);
    if (!this.isAllowed(real)) throw outside(given, this.roots);
  }
}

/**
 * The time of the inode's last change is not part of it: `chmod` and hard links change it too. They must not end a job
 * of hours. A write in place that sets the time back to the nanosecond is not noticed.
 */
function etagOfInode({ mtimeNs, size, ino }: BigIntStats): string {
  return `${mtimeNs}-${size}-${ino}`;
}

/** The prefix that a walk looks for, and the directory that it does not enter. */
interface Wanted {
  prefix: string;
  closed: string | undefined;
}

class OpenFile implements OpenObject {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  private readonly handle: FileHandle;

  constructor(path: string, handle: FileHandle, info: BigIntStats) {
    this.path = path;
    this.handle = handle;
    this.bytes = Number(info.size);
    this.etag = etagOfInode(info);
  }

  /** The etag is checked after each read, because a read sees what is written into the open file. */
  async read(into: Buffer, offset: number, position: number, length: number): Promise<number> {
    const { bytesRead } = await this.handle.read(into, offset, length, position);
    // Synchronous, because it takes microseconds; going through a thread costs half as much as the read.
    if (etagOfInode(fstatSync(this.handle.fd, { bigint: true })) !== this.etag)
      throw new ObjectChanged(this.path);
    return bytesRead;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/**
 * Real paths of the operator's roots. Throws if one is missing or in the data directory; one that contains it is fine.
 */
export async function resolveRoots(roots: readonly string[], dataDir: string): Promise<string[]> {
  const resolved: string[] = [];
  const closed = await realOrSelf(resolve(dataDir));
  for (const root of roots) {
    const real = await realpath(resolve(root.replace(/:ro$/, ""))).catch(() => {
      throw new Error(`--allow-local-root ${root}: there is no such directory`);
    });
    if (isInside(real, closed)) {
      throw new Error(
        `--allow-local-root ${root}: it is in the data directory ${dataDir}, which jobs may never read; name a directory outside of it`,
      );
    }
    resolved.push(real);
  }
  return resolved;
}

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/**
 * The real path of an opened file or directory; undefined if it cannot be determined. A path may change between link
 * and file while it is opened and resolved. So the path is read from the file descriptor where the system can.
 */
async function realOfOpened(handle: FileHandle, path: string): Promise<string | undefined> {
  if (IS_LINUX) return readlink(openedFile(handle));
  const real = await realpath(path);
  const [opened, found] = await Promise.all([handle.stat({ bigint: true }), lstat(real, { bigint: true })]);
  return opened.ino === found.ino && opened.dev === found.dev ? real : undefined;
}

function openedFile({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}

/** The real path. If there is no such file, the path that it would have in its nearest existing directory. */
async function realOrSelf(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined) return real;
  const parent = dirname(path);
  return parent === path
    ? path
    : resolve(await realOrSelf(parent), path.slice(parent.length).replace(/^\//, ""));
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
  const message = `${directory} may not be read by this server (${error.code}); give its user the right to, or leave the directory out`;
  return new ServiceError("store_forbidden", message, { cause: error });
}

function inDataDirectory(given: string): ServiceError {
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is in the server's data directory, which nobody may read by file://; put the file elsewhere`,
  );
}

function outside(given: string, roots: readonly string[]): ServiceError {
  const allowed = roots.length === 0 ? "no local root is allowed" : `allowed roots: ${roots.join(", ")}`;
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is not under a directory that this server may read (${allowed}); start it with --allow-local-root DIR`,
  );
}
