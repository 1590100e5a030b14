/**
 * Enqueues `delimited_files` and inline items: large reads, validated line by line. Segments refer to plain files; the
 * lines of compressed files are copied into the job's own file. Memory use is the same for any size of input.
 */
import { isUtf8 } from "node:buffer";
import { LINE_BYTES_LIMIT } from "../../contracts/limits/input-files.ts";
import { ObjectChanged, type OpenObject } from "../../object-store/object-store.ts";
import type { SelectedPage } from "../../object-store/select/select-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { ITEMS_ETAG, ITEMS_PATH, type ItemsWriter } from "../records/items-file.ts";
import type { JobInput } from "../records/job-input.ts";
import type { WindowWait } from "../zstd/reader.ts";
import { compressionOf, DecompressedObject } from "./decompress.ts";
import { type EnqueueCommits, endCursor } from "./enqueue-commits.ts";
import type { EnqueuePause, FilePosition, Position } from "./enqueue-position.ts";
import { LineScanner } from "./line-scanner.ts";
import type { SegmentMaker } from "./make-segments.ts";
import type { OpenBatch } from "./open-batch.ts";

const READ_BYTES = 512 * 1024;
const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export interface EnqueueLinesOptions {
  /** The file that is not read to its end, and the files after it. */
  file: FilePosition | undefined;
  pages: AsyncIterable<SelectedPage>;
  input: JobInput;
  /** Each line must be a JSON object; the job's own items were checked when they were submitted. */
  mustBeObjects: boolean;
  maker: SegmentMaker;
  commits: EnqueueCommits;
  own: ItemsWriter;
  pause: EnqueuePause;
  wait: WindowWait;
}

/** A file that is being read. */
interface Source {
  entry: number;
  path: string;
  etag: string;
  /** Its lines are copied, so that positions are those of the job's own file. */
  isCopied: boolean;
  /** Whether another file waits for memory that this one holds. */
  isAwaited: () => boolean;
}

/** Whole lines of a source that are in the buffer. */
interface Block extends Source {
  /** Their start in the file that is read, and in the file that ranges refer to. */
  position: number;
  base: number;
}

/** One for all jobs, because nothing is awaited between loading a block and taking its last line. */
let scanner: LineScanner | undefined;

export class LineEnqueuer {
  private readonly options: EnqueueLinesOptions;
  private buffer: Buffer = Buffer.alloc(0);

  constructor(options: EnqueueLinesOptions) {
    this.options = options;
  }

  /** Resolves to where it stopped; undefined if all is enqueued. Throws EnqueueError if the input is invalid. */
  async run(): Promise<Position | undefined> {
    const { file, pages, pause, maker, commits, own } = this.options;
    if (file !== undefined) {
      const stopped = await this.enqueueFile(file.path, file.entry, file);
      if (stopped !== undefined) return stopped;
    }
    for await (const { files, reached } of pages) {
      for (const { path, entry } of files) {
        const stopped = await this.enqueueFile(path, entry, undefined);
        if (stopped !== undefined) return stopped;
      }
      if (pause.isDue({ reached })) return { reached };
    }
    const rest = maker.finish();
    if (rest !== undefined) commits.keep(rest, endCursor(own));
    await commits.commit();
    return undefined;
  }

  /** Resolves to where it stopped, at the latest after this file. */
  private async enqueueFile(
    path: string,
    entry: number,
    resumed: FilePosition | undefined,
  ): Promise<Position | undefined> {
    const compression = compressionOf(path);
    const opened = await this.options.input.open(path);
    const unpacked =
      compression === undefined ? undefined : new DecompressedObject(opened, compression, this.options.wait);
    const object = unpacked ?? opened;
    try {
      if (resumed !== undefined && resumed.etag !== object.etag) throw changed(path);
      const isAwaited = () => unpacked?.isAwaited ?? false;
      const source = { entry, path, etag: object.etag, isCopied: unpacked !== undefined, isAwaited };
      return await this.enqueueLines(object, source, resumed?.offset ?? 0, resumed?.line ?? 0);
    } catch (error) {
      throw error instanceof ObjectChanged ? changed(path) : error;
    } finally {
      await object.close();
    }
  }

  private async enqueueLines(
    object: OpenObject,
    source: Source,
    position: number,
    line: number,
  ): Promise<Position | undefined> {
    const { maker, commits, own, pause, mustBeObjects } = this.options;
    const { entry, path, etag, isCopied } = source;
    const after = { reached: { entry, path } };
    let stopped: Position | undefined;
    if (isCopied) maker.beginFile(ITEMS_PATH, ITEMS_ETAG, own.bytes, { before: line, file: path });
    else maker.beginFile(path, etag, position, mustBeObjects ? { before: line } : undefined);
    let kept = 0;
    // One byte more than a small file has: it is read at once.
    const readBytes = Math.min(READ_BYTES, object.bytes + 1);
    for (let isEnd = false; !isEnd && stopped === undefined; ) {
      this.growBuffer(kept, readBytes, path, line);
      const read = await object.read(this.buffer, kept, position + kept, readBytes);
      isEnd = read === 0;
      const filled = kept + read;
      // The kept bytes have no newline.
      const newline = this.buffer.subarray(kept, filled).lastIndexOf(NEWLINE);
      const wholeLines = newline < 0 ? 0 : kept + newline + 1;
      const end = isEnd ? filled : wholeLines;
      if (end > 0) {
        line = this.takeBlock(end, position, source, line);
        if (isCopied) own.append(Buffer.from(this.buffer.subarray(0, end)));
        await commits.commitWhereFull();
        this.buffer.copyWithin(0, end, filled);
        position += end;
      }
      kept = filled - end;
      const at = isEnd ? after : { ...after, file: { entry, path, etag, offset: position, line } };
      if (pause.isDue(at, source.isAwaited())) stopped = at;
    }
    maker.endFile();
    return stopped;
  }

  /**
   * Takes the whole lines at the beginning of the buffer, which begin at `position` in the file. Returns the line
   * count.
   */
  private takeBlock(end: number, position: number, source: Source, line: number): number {
    const { mustBeObjects, maker, own } = this.options;
    // The start of the block in the file that ranges refer to.
    const base = source.isCopied ? own.bytes : position;
    const block = { ...source, base, position };
    if (!mustBeObjects) return this.takeItems(end, block, line);
    if (!isUtf8(this.buffer.subarray(0, end))) throw this.invalidUtf8(end, source.path, line);
    const hasMark = position === 0 && this.buffer.subarray(0, Math.min(3, end)).equals(BYTE_ORDER_MARK);
    if (!hasMark) return this.takeObjects(0, end, block, line);
    maker.skipTo(base + BYTE_ORDER_MARK.length);
    return this.takeObjects(BYTE_ORDER_MARK.length, end, block, line);
  }

  /** Lines from `at` on, each of which must be a JSON object. */
  private takeObjects(at: number, end: number, block: Block, line: number): number {
    scanner ??= new LineScanner();
    scanner.load(this.buffer, end);
    while (at < end) {
      const count = scanner.scan(at);
      if (count === 0) throw badLine(block.path, line + 1, scanner.problem);
      for (let i = 0; i < count; i++) {
        at = scanner.lineEnd(i);
        line++;
        const bytes = scanner.compactBytes(i);
        if (bytes === 0) this.options.maker.blankLine(block.base + at);
        else this.takeItem(at, bytes, block, line);
      }
    }
    return line;
  }

  /** The job's own lines, which were checked when they were submitted. */
  private takeItems(end: number, block: Block, line: number): number {
    for (let at = 0; at < end; ) {
      const start = at;
      at = this.buffer.indexOf(NEWLINE, at) + 1;
      this.takeItem(at, at - start - 1, block, ++line);
    }
    return line;
  }

  /** One item, whose line ends at `at` of the buffer. */
  private takeItem(at: number, compactBytes: number, block: Block, line: number): void {
    const { maker, commits, own } = this.options;
    const { entry, path, etag, isCopied, base, position } = block;
    const segment = maker.item(base + at, compactBytes);
    const { excess } = maker.batch;
    if (excess !== undefined) throw tooLarge(path, line, compactBytes, excess);
    if (segment === undefined) return;
    const own_bytes = isCopied ? base + at : own.bytes;
    commits.keep(segment, { entry, path, etag, offset: position + at, line, own_bytes });
  }

  private growBuffer(kept: number, readBytes: number, path: string, line: number): void {
    if (kept > LINE_BYTES_LIMIT) throw badLine(path, line + 1, `is longer than ${LINE_BYTES_LIMIT} bytes`);
    if (kept + readBytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (kept + readBytes));
    this.buffer.copy(larger, 0, 0, kept);
    this.buffer = larger;
  }

  private invalidUtf8(end: number, path: string, line: number): EnqueueError {
    for (let at = 0; at < end; ) {
      const newline = this.buffer.indexOf(NEWLINE, at);
      const stop = newline < 0 || newline >= end ? end : newline + 1;
      line++;
      if (!isUtf8(this.buffer.subarray(at, stop))) break;
      at = stop;
    }
    return badLine(path, line, "is not valid UTF-8");
  }
}

function badLine(path: string, line: number, problem: string): EnqueueError {
  return new EnqueueError(
    "invalid_line",
    `${path}: line ${line} ${problem}; each line must be a JSON object`,
    "correct the line and submit the job again",
  );
}

function changed(path: string): EnqueueError {
  return new EnqueueError(
    "input_changed",
    `${path} was changed while it was being enqueued`,
    "submit the job again, and do not change its input until it has ended",
  );
}

function tooLarge(
  path: string,
  line: number,
  bytes: number,
  { problem, cure }: NonNullable<OpenBatch["excess"]>,
): EnqueueError {
  const message = `${path}: with line ${line} (${bytes} bytes) its batch ${problem}`;
  return new EnqueueError("batch_too_large", message, cure);
}
