/**
 * Turns a job's input into segments: a stream of large reads, validated line by line, with the position in the input
 * committed beside the segments, so that a restart goes on where the last commit was. Memory is flat at any size.
 */
import { isUtf8 } from "node:buffer";
import type { ReachKillPoint } from "../base/kill-points.ts";
import { BATCH_BYTES_LIMIT, ENQUEUE_COMMIT_BYTES, LINE_BYTES_LIMIT } from "../contracts/limits.ts";
import type { Database } from "../database/database.ts";
import { appendSegment } from "../database/segment-store.ts";
import type { OpenObject } from "../object-store/object-store.ts";
import type { JobInput } from "./job-input.ts";
import { saveEnqueued } from "./job-store.ts";
import { LineScanner } from "./json-line.ts";
import { type NewSegment, SegmentMaker } from "./make-segments.ts";

const READ_BYTES = 512 * 1024;
const NEWLINE = 0x0a;

export interface EnqueueCursor {
  entry: number;
  path: string;
  etag: string;
  offset: number;
  /** Lines of the file before `offset`. */
  line: number;
}

export interface EnqueueOptions {
  jobId: string;
  epoch: number;
  batchSize: number;
  /** Files after the cursor, its own included. */
  files: (after: EnqueueCursor | undefined) => AsyncIterable<{ path: string; entry: number }>;
  input: JobInput;
  /** Each line must be a JSON object; the job's own items were checked when they were submitted. */
  mustBeObjects: boolean;
  cursor: EnqueueCursor | undefined;
  enqueuedBatches: number;
  /** Asked between blocks: true ends the work early. */
  isCancelled: () => boolean;
  reach: ReachKillPoint;
}

/** All is enqueued: no file is left after this one. */
const CURSOR_END: EnqueueCursor = { entry: Number.MAX_SAFE_INTEGER, path: "", etag: "", offset: 0, line: 0 };

/** The input is not what it must be; the job ends `status_enqueue_failed` with this message. */
export class EnqueueError extends Error {
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

export class Enqueuer {
  private readonly db: Database;
  private readonly options: EnqueueOptions;
  private readonly maker: SegmentMaker;
  private readonly scanner = new LineScanner();
  private buffer = Buffer.allocUnsafe(2 * READ_BYTES);
  private waiting: NewSegment[] = [];
  private waitingBytes = 0;
  private cursor: EnqueueCursor | undefined;

  constructor(db: Database, options: EnqueueOptions) {
    this.db = db;
    this.options = options;
    this.maker = new SegmentMaker(options.batchSize, options.enqueuedBatches);
    this.cursor = options.cursor;
  }

  /** Resolves to the number of batches, all of them committed; undefined when it was cancelled. */
  async run(): Promise<number | undefined> {
    const resume = this.options.cursor;
    for await (const { path, entry } of this.options.files(resume)) {
      const object = await this.options.input.open(path);
      const isResumed = resume !== undefined && resume.entry === entry && resume.path === path;
      if (isResumed && resume.etag !== object.etag) throw changed(path);
      try {
        await this.enqueueFile(
          object,
          isResumed ? resume : { entry, path, etag: object.etag, offset: 0, line: 0 },
        );
      } finally {
        await object.close();
      }
      if (this.options.isCancelled()) return undefined;
    }
    const rest = this.maker.finish();
    if (rest !== undefined) this.keep(rest, CURSOR_END);
    await this.commit();
    if (this.maker.nextBatch === 0) {
      throw new EnqueueError(
        "no_data",
        "the input has no items: all its files are empty",
        "check store_paths",
      );
    }
    return this.maker.nextBatch;
  }

  private async enqueueFile(object: OpenObject, from: EnqueueCursor): Promise<void> {
    const { path } = from;
    let position = from.offset;
    let line = from.line;
    let kept = 0;
    if (position === 0) position = await this.skipByteOrderMark(object);
    this.maker.beginFile(path, from.etag, position);
    for (let isEnd = false; !isEnd && !this.options.isCancelled(); ) {
      this.makeRoom(kept, path, line);
      const read = await object.read(this.buffer, kept, position + kept, READ_BYTES);
      isEnd = read === 0;
      const filled = kept + read;
      const end = isEnd ? filled : this.buffer.lastIndexOf(NEWLINE, filled - 1) + 1;
      if (end > 0) {
        line = this.takeBlock(end, position, from, line);
        if (this.waitingBytes >= ENQUEUE_COMMIT_BYTES) await this.commit();
        this.buffer.copyWithin(0, end, filled);
        position += end;
      }
      kept = filled - end;
    }
    this.maker.endFile();
  }

  /** Takes whole lines at the beginning of the buffer, which stand at `position` in the file. Returns the line count. */
  private takeBlock(
    end: number,
    position: number,
    { entry, path, etag }: EnqueueCursor,
    line: number,
  ): number {
    const { buffer, maker, scanner } = this;
    const { mustBeObjects } = this.options;
    if (mustBeObjects && !isUtf8(buffer.subarray(0, end))) throw this.invalidUtf8(end, path, line);
    for (let at = 0; at < end; ) {
      const start = at;
      line++;
      if (mustBeObjects) {
        scanner.scan(buffer, at, end);
        at = Math.min(scanner.next, end);
        if (scanner.kind === "invalid") throw badLine(path, line, scanner.problem);
        if (scanner.kind === "blank") {
          maker.blankLine(position + at);
          continue;
        }
      } else {
        scanner.spaces = 0;
        at = buffer.indexOf(NEWLINE, at) + 1;
      }
      const newline = buffer[at - 1] === NEWLINE ? 1 : 0;
      const compactBytes = at - start - newline - scanner.spaces;
      const segment = maker.item(position + at, compactBytes);
      if (maker.batchBytes >= BATCH_BYTES_LIMIT) throw tooLarge(path, line, maker.batchBytes, compactBytes);
      if (segment !== undefined) this.keep(segment, { entry, path, etag, offset: position + at, line });
    }
    return line;
  }

  private keep(segment: NewSegment, cursor: EnqueueCursor): void {
    this.waiting.push(segment);
    for (const range of segment.ranges) this.waitingBytes += range.end - range.start;
    this.cursor = cursor;
  }

  private async commit(): Promise<void> {
    const segments = this.waiting;
    if (segments.length === 0) return;
    const { jobId, epoch, reach } = this.options;
    const last = segments[segments.length - 1]!;
    await this.db.transaction(async (tx) => {
      for (const segment of segments) await appendSegment(tx, jobId, segment);
      if (!(await saveEnqueued(tx, jobId, epoch, last.first_batch + last.batch_count, this.cursor ?? null))) {
        throw new Error(`job ${jobId} has another owner`);
      }
      reach("segment-before-commit");
    });
    reach("segment-after-commit");
    this.waiting = [];
    this.waitingBytes = 0;
  }

  private makeRoom(kept: number, path: string, line: number): void {
    if (kept > LINE_BYTES_LIMIT) throw badLine(path, line + 1, `is longer than ${LINE_BYTES_LIMIT} bytes`);
    if (kept + READ_BYTES <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (kept + READ_BYTES));
    this.buffer.copy(larger, 0, 0, kept);
    this.buffer = larger;
  }

  private async skipByteOrderMark(object: OpenObject): Promise<number> {
    if (!this.options.mustBeObjects) return 0;
    const read = await object.read(this.buffer, 0, 0, 3);
    return read === 3 && this.buffer[0] === 0xef && this.buffer[1] === 0xbb && this.buffer[2] === 0xbf
      ? 3
      : 0;
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
    "submit the job again, and leave its input as it is until it has ended",
  );
}

function tooLarge(path: string, line: number, batchBytes: number, lineBytes: number): EnqueueError {
  const message = `${path}: with line ${line} (${lineBytes} bytes) its batch has ${batchBytes} bytes; a batch must be smaller than ${BATCH_BYTES_LIMIT}`;
  return new EnqueueError("batch_too_large", message, "use a smaller batch_size, or smaller items");
}
