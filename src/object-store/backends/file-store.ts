/**
 * `file://` under the roots that the operator allows. Access is checked on the opened file or directory, so that no
 * symbolic link leads out (docs/contract/submitting.md#links-stay-inside). The server's data directory is excluded from
 * every root, by its real path.
 */
import { type BigIntStats, fstatSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  type ObjectStore,
  type OpenObject,
} from "../object-store.ts";
import { fileAddress, localPath } from "../store-path.ts";
import { AllowedPaths } from "./allowed-paths.ts";
import { DirectoryWalk } from "./directory-walk.ts";
import { READ_AT_ONCE, realOfOpened, realOrSelf } from "./real-path.ts";

export class FileStore implements ObjectStore {
  private readonly allowed: AllowedPaths;
  private readonly temporaryDirectory: string;

  /**
   * `roots` and `closed`: real paths of absolute directories; `closed` may not be read. Large directories are sorted
   * with files in the temporary directory.
   */
  constructor(roots: readonly string[], temporaryDirectory: string, closed: string) {
    this.allowed = new AllowedPaths(roots, closed);
    this.temporaryDirectory = temporaryDirectory;
  }

  /** One, because a directory's names are in memory while it is listed, and there is no network to wait for. */
  parallelListings(): number {
    return 1;
  }

  async *list(prefix: string, { sizes, after, signal }: ListOptions): AsyncGenerator<ListedObject[]> {
    const path = localPath(prefix);
    const isRoot = this.allowed.isRoot(await realOrSelf(path));
    const directory = isRoot || path.endsWith("/") ? path.replace(/(?!^)\/$/, "") : dirname(path);
    const real = await realOrSelf(directory);
    this.allowed.assertHas(real, prefix);
    const wanted = isRoot && !path.endsWith("/") ? `${path}/` : path;
    const walk = new DirectoryWalk({
      prefix: wanted,
      closed: this.allowed.closedFrom(directory, real),
      allowed: this.allowed,
      temporaryDirectory: this.temporaryDirectory,
      signal,
    });
    const describe = (file: string): ListedObject => ({
      path: fileAddress(file),
      bytes: sizes ? (statSync(file, { throwIfNoEntry: false })?.size ?? 0) : undefined,
    });
    const last = after === undefined ? undefined : Buffer.from(localPath(after));
    const isBehind = (file: string) => last === undefined || Buffer.compare(Buffer.from(file), last) > 0;
    for await (const page of walk.pages(directory)) {
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
      this.allowed.assertHas(await realOfOpened(handle, local), path);
      if (!info.isFile()) throw new ObjectChanged(path);
      return new OpenFile(path, handle, info);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
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
 * The time of the inode's last change is not part of it: `chmod` and hard links change it too. They must not end a job
 * of hours. A write in place that sets the time back to the nanosecond is not noticed.
 */
function etagOfInode({ mtimeNs, size, ino }: BigIntStats): string {
  return `${mtimeNs}-${size}-${ino}`;
}
