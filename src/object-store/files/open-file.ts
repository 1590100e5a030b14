/** A file that is read by ranges, as long as its content stays the same. */
import { type BigIntStats, fstatSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { ObjectChanged, type OpenObject } from "../object-store.ts";

export class OpenFile implements OpenObject {
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
export function etagOfInode({ mtimeNs, size, ino }: BigIntStats): string {
  return `${mtimeNs}-${size}-${ino}`;
}
