/**
 * `file://` under the roots that the operator allows. Access is checked on the opened file or directory, so that no
 * symbolic link leads out (docs/contract/submitting.md#links-stay-inside). The server's data directory is excluded from
 * every root, by its real path.
 */
import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  ObjectMissing,
  type ObjectStore,
  type OpenObject,
  type Upload,
  type WriteCondition,
  type Written,
} from "../object-store.ts";
import { fileAddress, localPath } from "../store-path.ts";
import { AllowedPaths, type LocalRoot } from "./allowed-paths.ts";
import { DirectoryWalk } from "./directory-walk.ts";
import { FileWrites } from "./file-writes.ts";
import { OpenFile } from "./open-file.ts";
import { READ_AT_ONCE, realOfOpened, realOrSelf } from "./real-path.ts";

export class FileStore implements ObjectStore {
  private readonly allowed: AllowedPaths;
  private readonly writes: FileWrites;
  private readonly temporaryDirectory: string;

  /**
   * `closed`: the real path of the data directory, which is never accessed. Undefined for a store over a directory that
   * is itself in the data directory. Large directories are sorted with files in the temporary directory.
   */
  constructor(roots: readonly LocalRoot[], temporaryDirectory: string, closed: string | undefined) {
    this.allowed = new AllowedPaths(roots, closed);
    this.writes = new FileWrites(this.allowed);
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
      const described: ListedObject[] = [];
      for (const file of behind) {
        if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
        described.push(describe(file));
      }
      if (described.length > 0) yield described;
      // Without this, pages of names in memory would follow each other without a pause.
      await nextTurn();
    }
  }

  async open(path: string): Promise<OpenObject> {
    const local = localPath(path);
    const handle = await open(local, READ_AT_ONCE).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" ? new ObjectMissing(path, error) : error;
    });
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

  put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    return this.writes.put(path, body, condition);
  }

  create(path: string): Promise<Upload> {
    return this.writes.create(path);
  }

  remove(path: string): Promise<void> {
    return this.writes.remove(path);
  }

  async knowsConditions(prefix: string): Promise<boolean> {
    await this.writes.assertWritable(prefix);
    return true;
  }

  removeUnfinished(prefix: string): Promise<void> {
    return this.writes.removeUnfinished(prefix);
  }
}
