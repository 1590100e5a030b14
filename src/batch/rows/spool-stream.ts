/**
 * The rows of one worker on their way to the disk: one stream of bytes, in which batches follow each other. ACKs say
 * where each batch ends. The stream is written as it comes, so that no result is in memory as a whole.
 */
import { type DiskWait, whenDiskWorks } from "../../base/disk-full.ts";
import { OUTPUT_WINDOW_BYTES, SPOOL_FILE_BYTES, SPOOL_WRITE_BYTES } from "../../contracts/limits/outputs.ts";
import type { RowsSize } from "../../protocol/ack.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import type { RowsPlace } from "./rows-place.ts";
import type { SpoolFile } from "./spool-file.ts";

/** Buffers that are kept: one is written while the other fills up. */
const SPARE_MAX = 2;

export interface SpoolStreamOptions {
  diskWait: DiskWait;
  nextFile: () => SpoolFile;
  /** Waits until more may be written. False: the worker may send no more. */
  admit: () => Promise<boolean>;
  /** So many bytes are written: the worker may send as many more. */
  onWritten: (bytes: number) => void;
}

export class SpoolStream {
  private readonly options: SpoolStreamOptions;
  private file: SpoolFile;
  /** Bytes of the current file that came, and those of them that have a batch. */
  private received = 0;
  private taken = 0;
  /** How many bytes the worker may send before some are written. */
  private window = OUTPUT_WINDOW_BYTES;
  /** What came and is not being written yet, in memory that is used again. */
  private filling: Buffer | undefined;
  private filled = 0;
  private readonly spare: Buffer[] = [];
  private isClosed = false;
  /** Writes follow each other. Rejects if one failed, for another reason than a full disk. */
  private writing: Promise<void> = Promise.resolve();

  constructor(options: SpoolStreamOptions) {
    this.options = options;
    this.file = options.nextFile();
  }

  /**
   * Copies the next bytes of the worker. Throws if they are more than it may send. Drops them after the end: a worker
   * that is being ended may still send, and nothing of that counts.
   */
  append(bytes: Buffer): void {
    if (this.isClosed) return;
    if (bytes.length > this.window)
      throw new ProtocolError(`${bytes.length} bytes of output came, and only ${this.window} are granted`);
    this.window -= bytes.length;
    for (let at = 0; at < bytes.length; ) {
      this.filling ??= this.spare.pop() ?? Buffer.allocUnsafeSlow(SPOOL_WRITE_BYTES);
      const copied = bytes.copy(this.filling, this.filled, at);
      at += copied;
      this.filled += copied;
      this.received += copied;
      if (this.filled === SPOOL_WRITE_BYTES) this.flush();
    }
  }

  /** The file that is being written. */
  get fileNumber(): number {
    return this.file.number;
  }

  /** Bytes that came and are of no batch yet. */
  get untaken(): number {
    return this.received - this.taken;
  }

  /** The place of the next batch's rows, which have come. */
  take({ rows, bytes }: RowsSize): RowsPlace {
    const place = { file: this.file.number, offset: this.taken, bytes, rows };
    this.taken += bytes;
    if (this.taken === this.received && this.taken >= SPOOL_FILE_BYTES) this.beginFile();
    return place;
  }

  /** Resolves when all that came so far is durable. */
  async sync(): Promise<void> {
    const { file } = this;
    this.flush();
    await this.writing;
    await whenDiskWorks(() => file.sync(), this.options.diskWait);
  }

  /** Writes and syncs the rest, and closes the file. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.sync();
    await this.file.close();
  }

  private flush(): void {
    const { file, filling, filled } = this;
    if (filling === undefined) return;
    const offset = this.received - filled;
    this.filling = undefined;
    this.filled = 0;
    this.afterwards(async () => {
      const mayCome = await this.options.admit();
      await file.write(filling.subarray(0, filled), offset);
      if (this.spare.length < SPARE_MAX) this.spare.push(filling);
      this.window += filled;
      if (mayCome) this.options.onWritten(filled);
    });
  }

  private beginFile(): void {
    const { file } = this;
    this.flush();
    this.afterwards(() => file.sync());
    this.afterwards(() => file.close());
    this.file = this.options.nextFile();
    this.received = 0;
    this.taken = 0;
  }

  private afterwards(work: () => Promise<void>): void {
    this.writing = this.writing.then(() => whenDiskWorks(work, this.options.diskWait));
    // Whoever waits for the rows hears of a failure (`sync`).
    this.writing.catch(() => {});
  }
}
