/**
 * The rows that workers returned, on the server's disk until they are in a part of the output. What was computed ahead
 * of a slow batch waits here, not in memory. Each worker writes files of its own.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DiskWait, whenDiskWorks } from "../../base/disk-full.ts";
import { type Admit, PREDICTIONS } from "../../base/files/leave-free.ts";
import { sync } from "../../base/files/sync.ts";
import { OUTPUT_WINDOW_BYTES } from "../../contracts/limits/outputs.ts";
import { ReadHandles } from "./read-handles.ts";
import type { RowsPlace } from "./rows-place.ts";
import { SpoolFile } from "./spool-file.ts";
import { SpoolStream } from "./spool-stream.ts";

/** Of one controller in one job, at most: a petabyte of rows. */
const FILES_OF_EPOCH = 2 ** 24;
/** Many workers seldom send all at once, and a small disk must be large enough for them. */
const MAY_COME_MAX = 64 * 2 ** 20;
const NAME = /^(\d+)\.jsonl$/;

export class Spool {
  private readonly directory: string;
  private readonly diskWait: DiskWait;
  private readonly admit: Admit;
  private readonly streams = new Set<SpoolStream>();
  private readonly reading = new ReadHandles();
  lastFile: number;
  /** Since the directory was synced. */
  private hasNewFiles = true;

  private constructor(directory: string, lastFile: number, diskWait: DiskWait, admit: Admit) {
    this.directory = directory;
    this.lastFile = lastFile;
    this.diskWait = diskWait;
    this.admit = admit;
  }

  /**
   * `lastFile`: the number of the last file that was ever named (RowsIndex). `epoch`: each controller has numbers of its
   * own, because a former one may still write.
   */
  static open(
    directory: string,
    { lastFile, epoch }: { lastFile: number; epoch: number },
    diskWait: DiskWait,
    admit: Admit = async () => true,
  ): Spool {
    return new Spool(directory, Math.max(lastFile, epoch * FILES_OF_EPOCH), diskWait, admit);
  }

  /** The numbers of the files that are there. */
  files(): Promise<number[]> {
    return filesOf(this.directory);
  }

  /** Whether a worker still writes this file. */
  isWriting(file: number): boolean {
    for (const stream of this.streams) if (stream.fileNumber === file) return true;
    return false;
  }

  /** The rows of one worker. `onWritten`: it may send so many bytes more. */
  stream(onWritten: (bytes: number) => void): SpoolStream {
    const onCreated = () => {
      this.hasNewFiles = true;
    };
    const nextFile = () => {
      const number = ++this.lastFile;
      return new SpoolFile(number, this.path(number), onCreated);
    };
    const admit = () => this.admit(this.mayCome, PREDICTIONS);
    const stream = new SpoolStream({ diskWait: this.diskWait, nextFile, admit, onWritten });
    this.streams.add(stream);
    return stream;
  }

  /** Bytes that all workers may have sent: a job that is stopped writes them without waiting. */
  private get mayCome(): number {
    return Math.min(this.streams.size * OUTPUT_WINDOW_BYTES, MAY_COME_MAX);
  }

  /** The worker is gone: what it sent without an ACK is of no use. */
  async end(stream: SpoolStream): Promise<void> {
    await stream.close();
    this.streams.delete(stream);
  }

  /** Resolves when all that came so far is durable. */
  async sync(): Promise<void> {
    await Promise.all([...this.streams].map((stream) => stream.sync()));
    if (!this.hasNewFiles) return;
    this.hasNewFiles = false;
    await whenDiskWorks(() => sync(this.directory), this.diskWait).catch((error: Error) => {
      this.hasNewFiles = true;
      throw error;
    });
  }

  /** Reads `length` bytes of a file into `into`. Throws if they are not there. Waits while no file can be opened. */
  read(file: RowsPlace["file"], offset: number, into: Buffer, length: number): Promise<void> {
    const path = this.path(file);
    const read = () =>
      this.reading.with(path, async (handle) => {
        for (let filled = 0; filled < length; ) {
          const { bytesRead } = await handle.read(into, filled, length - filled, offset + filled);
          if (bytesRead === 0) throw new Error(`${path} ends at ${offset + filled}`);
          filled += bytesRead;
        }
      });
    return whenDiskWorks(read, this.diskWait);
  }

  /** Removes a file whose rows are all in parts. */
  async remove(file: number): Promise<void> {
    await this.reading.close(this.path(file));
    await rm(this.path(file), { force: true });
  }

  async close(): Promise<void> {
    await this.reading.closeAll();
    for (const stream of this.streams) await stream.close();
    this.streams.clear();
  }

  private path(file: number): string {
    return join(this.directory, `${file}.jsonl`);
  }
}

async function filesOf(directory: string): Promise<number[]> {
  const names = await readdir(directory);
  return names.flatMap((name) => (NAME.test(name) ? [Number(NAME.exec(name)![1])] : []));
}
