/**
 * Where the rows of each batch are in the spool: a file with one entry a batch, at a position that follows from its
 * number. So nothing of it is in memory, however many batches wait for an earlier one. An entry counts only once its
 * batch is settled in the database: it is written, and synced, before that commit.
 */
import { type FileHandle, open } from "node:fs/promises";
import { newestIndex, openOwnIndex } from "./own-file.ts";
import type { RowsPlace, SettledRows } from "./rows-place.ts";

/** `f64 file | u32 offset | u32 bytes | u32 rows`, little endian. The first is a head: the last file of the spool. */
const ENTRY_BYTES = 20;
const positionOf = (batchIndex: number) => (batchIndex + 1) * ENTRY_BYTES;

export class RowsIndex {
  /**
   * The number of the last file that an entry may name. Numbers are never used twice, so an entry of an earlier round
   * never names a file of this one.
   */
  readonly lastFile: number;
  private readonly file: FileHandle;

  private constructor(file: FileHandle, lastFile: number) {
    this.file = file;
    this.lastFile = lastFile;
  }

  /**
   * Opens the index of this controller, which is a copy of the former controller's. `directory`: of the spool. Throws
   * FormerOwner if a later controller has one.
   */
  static async open(directory: string, epoch: number): Promise<RowsIndex> {
    const file = await openOwnIndex(directory, epoch);
    const head = Buffer.alloc(ENTRY_BYTES);
    await file.read(head, 0, ENTRY_BYTES, 0);
    return new RowsIndex(file, head.readDoubleLE(0));
  }

  /** For reading only. Rejects with ENOENT if the job has no rows yet. */
  static async openForReading(directory: string): Promise<RowsIndex> {
    return new RowsIndex(await open(await newestIndex(directory), "r"), 0);
  }

  /** Writes the entries, adjacent ones together, and syncs them. `lastFile`: of the spool. */
  async write(entries: readonly SettledRows[], lastFile: number): Promise<void> {
    const head = Buffer.alloc(ENTRY_BYTES);
    head.writeDoubleLE(lastFile, 0);
    await this.file.write(head, 0, ENTRY_BYTES, 0);
    for (let from = 0; from < entries.length; ) {
      const count = runLength(entries, from);
      const bytes = encoded(entries, from, count);
      await this.file.write(bytes, 0, bytes.length, positionOf(entries[from]!.batchIndex));
      from += count;
    }
    await this.file.datasync();
  }

  /** The entries of `count` batches from `firstBatch` on. Batches that have none yet are `NO_ROWS`. */
  async read(firstBatch: number, count: number): Promise<RowsPlace[]> {
    const bytes = Buffer.alloc(count * ENTRY_BYTES);
    await this.file.read(bytes, 0, bytes.length, positionOf(firstBatch));
    return Array.from({ length: count }, (_, i) => decoded(bytes, i * ENTRY_BYTES));
  }

  close(): Promise<void> {
    return this.file.close();
  }
}

/** How many entries from `from` on are of adjacent batches. */
function runLength(entries: readonly SettledRows[], from: number): number {
  const { batchIndex } = entries[from]!;
  let count = 1;
  while (entries[from + count]?.batchIndex === batchIndex + count) count++;
  return count;
}

function encoded(entries: readonly SettledRows[], from: number, count: number): Buffer {
  const bytes = Buffer.allocUnsafe(count * ENTRY_BYTES);
  for (let i = 0; i < count; i++) {
    const { file, offset, bytes: length, rows } = entries[from + i]!.place;
    const at = i * ENTRY_BYTES;
    bytes.writeDoubleLE(file, at);
    bytes.writeUInt32LE(offset, at + 8);
    bytes.writeUInt32LE(length, at + 12);
    bytes.writeUInt32LE(rows, at + 16);
  }
  return bytes;
}

function decoded(bytes: Buffer, at: number): RowsPlace {
  return {
    file: bytes.readDoubleLE(at),
    offset: bytes.readUInt32LE(at + 8),
    bytes: bytes.readUInt32LE(at + 12),
    rows: bytes.readUInt32LE(at + 16),
  };
}
