/**
 * The job's own file, one JSON text a line: inline items, written whole when the job is submitted; selected paths and the
 * lines of compressed files, appended while the job is enqueued. Append-only: a reader may have it open meanwhile.
 */
import { type FileHandle, open, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectories } from "../base/disk-full.ts";
import type { OpenObject } from "../object-store/object-store.ts";

/** What stands for the job's own file in ranges: no path, and one etag, because what was committed never changes. */
export const OWN_PATH = "";
export const OWN_ETAG = "own";
const IDS_A_QUERY = 500;

/** The directory of the job's own files; removed with the job. */
export function jobDirectory(dataDir: string, jobId: string): string {
  return join(dataDir, "jobs", jobId);
}

export function ownFilePath(dataDir: string, jobId: string): string {
  return join(jobDirectory(dataDir, jobId), "items.jsonl");
}

/** The directories of submissions that were cut off before they were recorded go. */
export async function removeOrphans(
  dataDir: string,
  existing: (ids: readonly string[]) => Promise<Set<string>>,
): Promise<void> {
  const root = dirname(jobDirectory(dataDir, "any"));
  const names = await readdir(root).catch(() => [] as string[]);
  for (let at = 0; at < names.length; at += IDS_A_QUERY) {
    const page = names.slice(at, at + IDS_A_QUERY);
    const known = await existing(page);
    for (const name of page.filter((id) => !known.has(id)))
      await rm(join(root, name), { recursive: true, force: true });
  }
}

/** Opens it for reading. */
export async function openOwnFile(path: string): Promise<OpenObject> {
  const handle = await open(path, "r");
  return {
    path: OWN_PATH,
    etag: OWN_ETAG,
    bytes: (await handle.stat()).size,
    read: async (into, offset, position, length) =>
      (await handle.read(into, offset, length, position)).bytesRead,
    close: () => handle.close(),
  };
}

/** Writes all of it, durably: the content, and the names that lead to it. */
export async function writeOwnFile(path: string, content: Buffer): Promise<void> {
  const writer = new OwnFileWriter(path);
  await writer.open(0);
  try {
    writer.append(content);
    await writer.flush();
  } finally {
    await writer.close();
  }
}

/** Appends; what was appended is durable after `flush`. */
export class OwnFileWriter {
  /** Bytes, those not yet flushed included. */
  bytes = 0;
  private readonly path: string;
  private file: FileHandle | undefined;
  /** Of these, what `flush` has yet to write. */
  waitingBytes = 0;
  private waiting: Buffer[] = [];

  constructor(path: string) {
    this.path = path;
  }

  /** What is behind `committedBytes` was never committed, and goes. May be tried again after an error. */
  async open(committedBytes: number): Promise<void> {
    const directory = dirname(this.path);
    makeDirectories(directory);
    await this.close();
    this.file = await open(this.path, committedBytes === 0 ? "w" : "r+", 0o600);
    await this.file.truncate(committedBytes);
    this.bytes = committedBytes;
    for (const parent of [directory, dirname(directory)]) await syncDirectory(parent);
  }

  /** `content` must stay as it is until it is flushed. */
  append(content: Buffer): void {
    this.waiting.push(content);
    this.bytes += content.length;
    this.waitingBytes += content.length;
  }

  /** May be tried again after an error. */
  async flush(): Promise<void> {
    const content = Buffer.concat(this.waiting);
    if (content.length === 0) return;
    const start = this.bytes - content.length;
    for (let written = 0; written < content.length; )
      written += (await this.file!.write(content, written, content.length - written, start + written))
        .bytesWritten;
    await this.file!.sync();
    this.waiting = [];
    this.waitingBytes = 0;
  }

  async close(): Promise<void> {
    const { file } = this;
    this.file = undefined;
    await file?.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
