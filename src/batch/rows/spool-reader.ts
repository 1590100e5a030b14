/** Reads rows from the spool beside the run that writes it, or after that has ended. */
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { RESULTS_READ_BYTES } from "../../contracts/limits/outputs.ts";
import { RowsIndex } from "./rows-by-batch.ts";
import type { RowsPlace } from "./rows-place.ts";
import { adjacentRuns, type RowsRun } from "./rows-runs.ts";

/** A reader that does not read on holds a page: 100 KiB. */
const ENTRIES_A_PAGE = 1024;

export class SpoolReader {
  private readonly directory: string;
  private readonly index: RowsIndex;
  private file: { number: number; handle: FileHandle } | undefined;

  private constructor(directory: string, index: RowsIndex) {
    this.directory = directory;
    this.index = index;
  }

  /** Rejects with ENOENT if there is no spool. */
  static async open(directory: string): Promise<SpoolReader> {
    return new SpoolReader(directory, await RowsIndex.openForReading(directory));
  }

  /** The rows of settled batches, from `first` to the one before `next`. Rejects with ENOENT if they are in a part. */
  async *rows(first: number, next: number): AsyncGenerator<{ bytes: Buffer; next: number }> {
    for (let from = first; from < next; from += ENTRIES_A_PAGE) {
      const places = await this.index.read(from, Math.min(ENTRIES_A_PAGE, next - from));
      for (const run of adjacentRuns(places, from)) yield* this.run(run);
    }
  }

  async close(): Promise<void> {
    await this.file?.handle.close();
    await this.index.close();
  }

  private async *run({ file, offset, bytes, firstBatch, nextBatch }: RowsRun) {
    const handle = await this.opened(file);
    for (let read = 0; read < bytes; ) {
      const length = Math.min(RESULTS_READ_BYTES, bytes - read);
      const piece = Buffer.allocUnsafe(length);
      const { bytesRead } = await handle.read(piece, 0, length, offset + read);
      if (bytesRead === 0) throw new Error(`${file}.jsonl ends at ${offset + read}`);
      read += bytesRead;
      yield { bytes: piece.subarray(0, bytesRead), next: read < bytes ? firstBatch : nextBatch };
    }
  }

  private async opened(number: RowsPlace["file"]): Promise<FileHandle> {
    if (this.file?.number === number) return this.file.handle;
    await this.file?.handle.close();
    this.file = undefined;
    const handle = await open(join(this.directory, `${number}.jsonl`), "r");
    this.file = { number, handle };
    return handle;
  }
}
