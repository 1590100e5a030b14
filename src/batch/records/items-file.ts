/**
 * Reads and writes the job's own file, one JSON text a line. Inline items are written whole when the job is submitted.
 * Selected paths and the lines of compressed files are appended while the job is enqueued. The file is append-only,
 * because a reader may have it open.
 */
import { type FileHandle, open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectories } from "../../base/disk-full.ts";
import { COPIES, leaveFree, type Part, writeLeaving } from "../../base/files/leave-free.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import { sync } from "../../base/files/sync.ts";
import { itemsFile, jobDirectory, jobsDirectory } from "../../contracts/data-layout.ts";
import type { Statements } from "../../database/database.ts";
import type { ObjectStore, OpenObject } from "../../object-store/object-store.ts";

/** Where the items of jobs are kept: files of the data directory, or objects of the server's state. */
export interface ItemsStore {
  /** Throws DiskNearlyFull if so many bytes would leave too little space for everything else. */
  admit(bytes: number, part: Part): Promise<void>;
  /** Writes the items of a submission durably, before its job is recorded. */
  write(jobId: string, content: Buffer): Promise<void>;
  /** In the transaction that records the job with these items. */
  named(tx: Statements, jobId: string): Promise<void>;
  /** The submission was not recorded. */
  forget(jobId: string): Promise<void>;
  /** `store` waits as the job does. */
  writer(jobId: string, store: ObjectStore): ItemsWriter;
  open(jobId: string, store: ObjectStore): Promise<OpenObject>;
  /** In the transaction that begins the removal of an ended job's data, while its input is still recorded. */
  giveUp(tx: Statements, jobId: string): Promise<void>;
}

/** Appends to the items of a job; what was appended is durable after `flush`. */
export interface ItemsWriter {
  /** Bytes, including those not yet flushed. */
  readonly bytes: number;
  /** Bytes that `flush` still has to write. */
  readonly waitingBytes: number;
  /** Forgets what is after `committedBytes`: it was never committed. May be retried after an error. */
  open(committedBytes: number): Promise<void>;
  /** `content` must not change until it is flushed. */
  append(content: Buffer): void;
  /** May be retried after an error. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export function itemsInFiles(dataDir: string): ItemsStore {
  return {
    admit: (bytes, part) => leaveFree(dataDir, bytes, part),
    write: (jobId, content) => writeItemsFile(itemsFile(dataDir, jobId), content),
    named: async () => {},
    forget: (jobId) => removeTree(jobDirectory(dataDir, jobId)),
    writer: (jobId) =>
      new ItemsFileWriter(itemsFile(dataDir, jobId), (bytes, write) =>
        writeLeaving(dataDir, bytes, COPIES, write),
      ),
    open: (jobId) => openItemsFile(itemsFile(dataDir, jobId)),
    giveUp: async () => {},
  };
}

/** How ranges name the job's own file: an empty path, and a constant etag because committed content never changes. */
export const ITEMS_PATH = "";
export const ITEMS_ETAG = "own";
const IDS_A_QUERY = 500;

/** Removes the directories of submissions that were cut off before they were recorded. */
export async function removeOrphans(
  dataDir: string,
  existing: (ids: readonly string[]) => Promise<Set<string>>,
): Promise<void> {
  const root = jobsDirectory(dataDir);
  const names = await readdir(root).catch(() => [] as string[]);
  for (let at = 0; at < names.length; at += IDS_A_QUERY) {
    const page = names.slice(at, at + IDS_A_QUERY);
    const known = await existing(page);
    for (const name of page.filter((id) => !known.has(id))) await removeTree(join(root, name));
  }
}

/** Opens the job's own file for reading. */
export async function openItemsFile(path: string): Promise<OpenObject> {
  const handle = await open(path, "r");
  return {
    path: ITEMS_PATH,
    etag: ITEMS_ETAG,
    bytes: (await handle.stat()).size,
    read: async (into, offset, position, length) =>
      (await handle.read(into, offset, length, position)).bytesRead,
    close: () => handle.close(),
  };
}

/** Writes the whole file durably: its content and its directory entries. */
export async function writeItemsFile(path: string, content: Buffer): Promise<void> {
  const writer = new ItemsFileWriter(path);
  await writer.open(0);
  try {
    writer.append(content);
    await writer.flush();
  } finally {
    await writer.close();
  }
}

/** Does `write`, which writes so many bytes, or refuses to. */
type AroundWrite = (bytes: number, write: () => Promise<void>) => Promise<void>;

export class ItemsFileWriter implements ItemsWriter {
  bytes = 0;
  private readonly path: string;
  private readonly around: AroundWrite;
  private file: FileHandle | undefined;
  waitingBytes = 0;
  private waiting: Buffer[] = [];

  constructor(path: string, around: AroundWrite = (_, write) => write()) {
    this.path = path;
    this.around = around;
  }

  async open(committedBytes: number): Promise<void> {
    const directory = dirname(this.path);
    makeDirectories(directory);
    await this.close();
    this.file = await open(this.path, committedBytes === 0 ? "w" : "r+", 0o600);
    await this.file.truncate(committedBytes);
    this.bytes = committedBytes;
    for (const parent of [directory, dirname(directory)]) await sync(parent);
  }

  append(content: Buffer): void {
    this.waiting.push(content);
    this.bytes += content.length;
    this.waitingBytes += content.length;
  }

  async flush(): Promise<void> {
    const content = Buffer.concat(this.waiting);
    if (content.length === 0) return;
    await this.around(content.length, () => this.write(content));
    this.waiting = [];
    this.waitingBytes = 0;
  }

  private async write(content: Buffer): Promise<void> {
    const start = this.bytes - content.length;
    for (let written = 0; written < content.length; )
      written += (await this.file!.write(content, written, content.length - written, start + written))
        .bytesWritten;
    await this.file!.sync();
  }

  async close(): Promise<void> {
    const { file } = this;
    this.file = undefined;
    await file?.close();
  }
}
