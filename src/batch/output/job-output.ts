/**
 * The output of a job while it runs: rows come from its workers, are durable before their batches are counted, and
 * become parts in the store, in the order of batches (docs/decisions/0004-commit-order.md).
 */
import { contain } from "../../base/boundary.ts";
import type { DiskWait } from "../../base/disk-full.ts";
import { whenDiskWorks } from "../../base/disk-full.ts";
import type { OpenRows, RowsOfWorker } from "../deliveries/deliveries.ts";
import type { JoinRows } from "../isolate/isolated-outcomes.ts";
import { joinRows } from "../rows/join-rows.ts";
import type { RowsIndex } from "../rows/rows-by-batch.ts";
import type { SettledRows } from "../rows/rows-place.ts";
import type { Spool } from "../rows/spool.ts";
import { SpoolFiles } from "../rows/spool-files.ts";
import type { SpoolStream } from "../rows/spool-stream.ts";
import { OutputParts, type OutputPartsOptions } from "./output-parts.ts";

export interface JobOutputOptions extends Omit<OutputPartsOptions, "files" | "totalBatches"> {
  diskWait: DiskWait;
  /** A part could not be written: the job cannot go on. */
  onError: (error: Error) => void;
}

export class JobOutput {
  private readonly options: JobOutputOptions;
  private readonly spool: Spool;
  private readonly index: RowsIndex;
  private readonly files: SpoolFiles;
  private parts: OutputParts | undefined;
  /** The joined rows of batches that were split. */
  private joined: SpoolStream | undefined;
  private beginning: Promise<void> = Promise.resolve();
  private writing: Promise<void> = Promise.resolve();
  private isWriteWanted = false;
  private isClosed = false;

  constructor(options: JobOutputOptions) {
    this.options = options;
    this.spool = options.spool;
    this.index = options.index;
    this.files = new SpoolFiles(options.spool);
  }

  /** The rows of a worker that has just started. */
  readonly openRows: OpenRows = (onWritten) => new WorkerRows(this.spool, this.spool.stream(onWritten));

  /** Those of these files of the spool that are gone. */
  async lost(files: readonly number[]): Promise<number[]> {
    if (files.length === 0) return [];
    const there = new Set(await this.spool.files());
    return files.filter((file) => !there.has(file));
  }

  /**
   * All batches are known. Continues after the parts that are there, with the batches that `eachSettled` names. `kept`:
   * files of the spool that have rows of split batches.
   */
  async begin(
    totalBatches: number,
    eachSettled: (settled: (batch: number) => void) => Promise<void>,
    kept: readonly number[] = [],
  ): Promise<void> {
    const begun = this.load(totalBatches, eachSettled, kept);
    // Only the caller gets its error.
    this.beginning = begun.catch(() => {});
    await begun;
  }

  private async load(
    totalBatches: number,
    eachSettled: (settled: (batch: number) => void) => Promise<void>,
    kept: readonly number[],
  ): Promise<void> {
    for (const file of kept) this.files.keep(file);
    const parts = await OutputParts.open({ ...this.options, files: this.files, totalBatches });
    await eachSettled((batch) => parts.settled(batch));
    const isSettled = (batchIndex: number) => parts.isSettled(batchIndex);
    await this.files.begin(this.index, { firstNew: parts.first, totalBatches }, isSettled);
    this.parts = parts;
    this.writeSoon();
  }

  /**
   * A batch, or a part of one that is searched, has rows in this place. Its file stays until the batch is in a part of
   * the output.
   */
  hold({ batchIndex, place }: SettledRows): void {
    this.files.has(batchIndex, place);
  }

  /**
   * Makes the rows of these batches durable. They count only after the commit that follows, so their entries need not
   * wait for them: all files are synced at the same time.
   */
  async save(settled: readonly SettledRows[]): Promise<void> {
    const entries = [...settled].sort((a, b) => a.batchIndex - b.batchIndex);
    const { spool, index } = this;
    const writeIndex = () => index.write(entries, spool.lastFile);
    await Promise.all([spool.sync(), whenDiskWorks(writeIndex, this.options.diskWait)]);
  }

  /** Joins rows from several places, in order; `isKept`: the result stays until the job's data is removed. */
  readonly join: JoinRows = async (pieces, isKept) => {
    await this.spool.sync();
    this.joined ??= this.spool.stream(() => {});
    const place = await joinRows(this.spool, this.joined, pieces);
    if (isKept) this.files.keep(place.file);
    return place;
  };

  /** The batches are counted: their rows may become parts. */
  committed(settled: readonly SettledRows[]): void {
    for (const { batchIndex } of settled) this.parts?.settled(batchIndex);
    this.writeSoon();
  }

  /** Writes what is left of the parts. All batches are settled. Throws if it cannot be written. */
  async finish(): Promise<void> {
    await this.writing;
    await this.parts?.finish();
  }

  /**
   * Stops writing parts. What is settled stays on the disk, for the next run. Waits for `begin`, which reads what is
   * closed here.
   */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.beginning;
    await this.writing;
    await this.spool.close();
    await this.index.close();
  }

  /** Writes parts, one at a time; what is settled meanwhile is looked at again afterwards. */
  private writeSoon(): void {
    if (this.isWriteWanted || this.isClosed) return;
    this.isWriteWanted = true;
    this.writing = this.writing.then(() => {
      this.isWriteWanted = false;
      return this.write();
    });
  }

  private async write(): Promise<void> {
    if (this.isClosed) return;
    await this.parts?.write().catch((error: Error) => {
      if (!this.isClosed) this.options.onError(error);
    });
  }
}

class WorkerRows implements RowsOfWorker {
  private readonly spool: Spool;
  private readonly stream: SpoolStream;

  constructor(spool: Spool, stream: SpoolStream) {
    this.spool = spool;
    this.stream = stream;
  }

  get untaken(): number {
    return this.stream.untaken;
  }

  append(bytes: Buffer): void {
    this.stream.append(bytes);
  }

  take(size: Parameters<RowsOfWorker["take"]>[0]) {
    return this.stream.take(size);
  }

  end(): void {
    contain("the rows of a worker", () => this.spool.end(this.stream));
  }
}
