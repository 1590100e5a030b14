/** One file of the spool: rows of one worker, appended as they come. It is made with its first write. */
import { type FileHandle, open } from "node:fs/promises";

export class SpoolFile {
  /** From 1; unique in a job, over all its controllers. */
  readonly number: number;
  private readonly path: string;
  private readonly onCreated: () => void;
  private handle: Promise<FileHandle> | undefined;
  private isSynced = true;

  /** `onCreated`: its directory must be synced too. */
  constructor(number: number, path: string, onCreated: () => void) {
    this.number = number;
    this.path = path;
    this.onCreated = onCreated;
  }

  /** May be retried after an error. Never replaces a file that is there. */
  async write(bytes: Buffer, offset: number): Promise<void> {
    const handle = await this.opened();
    this.isSynced = false;
    for (let written = 0; written < bytes.length; )
      written += (await handle.write(bytes, written, bytes.length - written, offset + written)).bytesWritten;
  }

  /** Makes what was written durable. May be retried after an error. */
  async sync(): Promise<void> {
    if (this.isSynced) return;
    this.isSynced = true;
    await (await this.opened()).datasync().catch((error: Error) => {
      this.isSynced = false;
      throw error;
    });
  }

  async close(): Promise<void> {
    const { handle } = this;
    this.handle = undefined;
    await (await handle)?.close();
  }

  private opened(): Promise<FileHandle> {
    if (this.handle !== undefined) return this.handle;
    this.onCreated();
    this.handle = open(this.path, "wx", 0o600).catch((error: Error) => {
      this.handle = undefined;
      throw error;
    });
    return this.handle;
  }
}
