/**
 * A file without its final name. Its content becomes durable first, then it gets the name in one step. If the process is
 * killed before, a file `.quern-….tmp` is left, which listings leave out.
 */
import { constants } from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm, stat } from "node:fs/promises";
import { ConditionFailed, UploadLost, type WriteCondition } from "../object-store.ts";
import { newTemporaryName } from "../own-names.ts";
import { etagOfInode } from "./open-file.ts";
import type { WritableDirectory } from "./writable-directory.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** The file system has no hard links, or no more for this file. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

export class TemporaryFile {
  private readonly directory: WritableDirectory;
  private readonly path: string;
  private readonly handle: FileHandle;
  private readonly given: string;
  private isMoved = false;
  private isLost = false;

  private constructor(directory: WritableDirectory, path: string, handle: FileHandle, given: string) {
    this.directory = directory;
    this.path = path;
    this.handle = handle;
    this.given = given;
  }

  /** `given`: the address that errors show. */
  static async create(directory: WritableDirectory, given: string): Promise<TemporaryFile> {
    const path = directory.at(newTemporaryName());
    return new TemporaryFile(directory, path, await open(path, NEW), given);
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.handle.write(bytes, at, bytes.length - at, position + at);
      at += bytesWritten;
    }
  }

  /**
   * Makes the content durable; resolves to its etag. Once this has failed, the content is lost: the system may have
   * dropped it, and would report success the next time.
   */
  async sync(): Promise<string> {
    if (this.isLost) throw new UploadLost(this.given, "the disk did not take what was written before");
    try {
      await this.handle.sync();
    } catch (error) {
      this.isLost = true;
      throw error;
    }
    return etagOfInode(await this.handle.stat({ bigint: true }));
  }

  /**
   * Gives the file its name. No other write of this process to the same name may run meanwhile. "absent" holds even
   * against other processes, unless the file system has no hard links; an etag does not.
   */
  async moveTo(name: string, condition: WriteCondition | undefined): Promise<void> {
    if (this.isMoved) return;
    const target = this.directory.at(name);
    if (condition === "absent") await this.linkTo(target, condition);
    else {
      if (condition !== undefined && (await etagAt(target)) !== condition.etag)
        throw new ConditionFailed(this.given, condition);
      await this.renameTo(target);
    }
  }

  /** Closes the file, and removes it if it has not got its name. */
  async close(): Promise<void> {
    try {
      await this.handle.close();
    } finally {
      if (!this.isMoved) await rm(this.path, { force: true });
    }
  }

  private async linkTo(target: string, condition: "absent"): Promise<void> {
    try {
      await link(this.path, target);
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (code !== "EEXIST" && !NO_LINKS.has(code)) throw error;
      if (code === "EEXIST" || (await exists(target))) throw new ConditionFailed(this.given, condition);
      await this.renameTo(target);
    }
  }

  private async renameTo(target: string): Promise<void> {
    await rename(this.path, target).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" ? new UploadLost(this.given, "its directory was removed") : error;
    });
    this.isMoved = true;
  }
}

async function etagAt(path: string): Promise<string | undefined> {
  const info = await stat(path, { bigint: true }).catch(ifMissing);
  return info && etagOfInode(info);
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(ifMissing)) !== undefined;
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
