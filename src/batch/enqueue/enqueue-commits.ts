/**
 * Commits segments, a few megabytes at a time, for all kinds of input. Each commit has the position in the input where
 * its segments end, and a restart continues there. Copied content is on the disk before its segments are committed.
 */
import { type DiskWait, whenDiskWorks } from "../../base/disk-full.ts";
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { ENQUEUE_COMMIT_BYTES } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { appendSegments } from "../../database/segment-rows.ts";
import { ITEMS_PATH, type ItemsWriter } from "../records/items-file.ts";
import { FormerOwner, saveEnqueued } from "../records/owned-job.ts";
import { type NewSegment, rangeRowBytes } from "./make-segments.ts";

/** The position in the input at which the committed segments end. */
export interface EnqueueCursor {
  /** Index in `store_paths`, and the file. */
  entry: number;
  path: string;
  etag: string;
  /** Bytes and lines of the file; of a compressed file, after decompression. */
  offset: number;
  line: number;
  /** Bytes of the job's own file. */
  own_bytes: number;
}

/** The cursor once all is enqueued: no file comes after it. */
export function endCursor(own: ItemsWriter): EnqueueCursor {
  const entry = Number.MAX_SAFE_INTEGER;
  return { entry, path: ITEMS_PATH, etag: "", offset: 0, line: 0, own_bytes: own.bytes };
}

export interface EnqueueTarget {
  db: Database;
  jobId: string;
  epoch: number;
  reach: ReachKillPoint;
  /** How to wait while the disk is full. */
  diskWait: DiskWait;
}

export class EnqueueCommits {
  private readonly target: EnqueueTarget;
  private readonly own: ItemsWriter;
  private waiting: NewSegment[] = [];
  private waitingBytes = 0;
  private cursor: EnqueueCursor | undefined;

  constructor(target: EnqueueTarget, own: ItemsWriter) {
    this.target = target;
    this.own = own;
  }

  keep(segment: NewSegment, cursor: EnqueueCursor): void {
    this.waiting.push(segment);
    for (const range of segment.ranges) this.waitingBytes += range.end - range.start + rangeRowBytes(range);
    this.cursor = cursor;
  }

  async commitWhereFull(): Promise<void> {
    if (this.waitingBytes >= ENQUEUE_COMMIT_BYTES) await this.commit();
    // Copied content may have no item for long stretches: blank lines.
    else if (this.own.waitingBytes >= ENQUEUE_COMMIT_BYTES) await this.flush();
  }

  /** Commits all segments, and makes what was copied after them durable, too. */
  async pause(): Promise<void> {
    await this.commit();
    await this.flush();
  }

  private flush(): Promise<void> {
    return whenDiskWorks(() => this.own.flush(), this.target.diskWait);
  }

  async commit(): Promise<void> {
    const segments = this.waiting;
    if (segments.length === 0) return;
    const { db, jobId, epoch, reach } = this.target;
    await this.flush();
    const last = segments[segments.length - 1]!;
    await db.transaction(async (tx) => {
      await appendSegments(tx, jobId, segments);
      if (!(await saveEnqueued(tx, jobId, epoch, last.first_batch + last.batch_count, this.cursor ?? null)))
        throw new FormerOwner();
      reach("segment-before-commit");
    });
    reach("segment-after-commit");
    this.waiting = [];
    this.waitingBytes = 0;
  }
}
