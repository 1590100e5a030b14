/**
 * The open files that rows are read from: few, however many files a spool has. Each death of a worker begins a file,
 * and a part may have rows of all of them.
 */
import { type FileHandle, open } from "node:fs/promises";

const OPEN_MAX = 8;

interface Opened {
  handle: Promise<FileHandle>;
  readers: number;
}

export class ReadHandles {
  /** The least recently used is the first. */
  private readonly opened = new Map<string, Opened>();

  /** More than OPEN_MAX files are open only while all of them are being read. */
  async with<T>(path: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
    const file = this.opened.get(path) ?? this.open(path);
    this.opened.delete(path);
    this.opened.set(path, file);
    file.readers++;
    try {
      await this.closeOldest();
      return await work(await file.handle);
    } finally {
      file.readers--;
    }
  }

  async close(path: string): Promise<void> {
    const file = this.opened.get(path);
    this.opened.delete(path);
    await (await file?.handle.catch(() => undefined))?.close();
  }

  async closeAll(): Promise<void> {
    for (const path of [...this.opened.keys()]) await this.close(path);
  }

  private open(path: string): Opened {
    const file = { handle: open(path, "r"), readers: 0 };
    file.handle.catch(() => {
      if (this.opened.get(path) === file) this.opened.delete(path);
    });
    return file;
  }

  private async closeOldest(): Promise<void> {
    for (const [path, { readers }] of this.opened) {
      if (this.opened.size <= OPEN_MAX) return;
      if (readers === 0) await this.close(path);
    }
  }
}
