/**
 * What all enqueuing shares: segments are committed a few megabytes at a time, together with the position in the input
 * that they end at, so that a restart goes on from there. What they copied is on the disk before they are committed.
 */
import { type RoomWait, whenThereIsRoom } from "../base/disk-full.ts";
import type { ReachKillPoint } from "../base/kill-points.ts";
import { ENQUEUE_COMMIT_BYTES } from "../contracts/limits.ts";
import type { Database } from "../database/database.ts";
import { appendSegment } from "../database/segment-store.ts";
import { saveEnqueued } from "./job-store.ts";
import type { NewSegment } from "./make-segments.ts";
import { OWN_PATH, type OwnFileWriter } from "./own-file.ts";

/** The last of the input that is in a committed segment. */
export interface EnqueueCursor {
  /** Index in `store_paths`, and the file. */
  entry: number;
  path: string;
  etag: string;
  /** Bytes and lines of the file; of a compressed one, as decompressed. */
  offset: number;
  line: number;
  /** Bytes of the job's own file. */
  own_bytes: number;
}

/** All is enqueued: no file is left after this one. */
export function endCursor(own: OwnFileWriter): EnqueueCursor {
  const entry = Number.MAX_SAFE_INTEGER;
  return { entry, path: OWN_PATH, etag: "", offset: 0, line: 0, own_bytes: own.bytes };
}

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

export interface EnqueueTarget {
  db: Database;
  jobId: string;
  epoch: number;
  reach: ReachKillPoint;
  /** Where the disk is full. */
  room: RoomWait;
}

export class EnqueueCommits {
  private readonly target: EnqueueTarget;
  private readonly own: OwnFileWriter;
  private waiting: NewSegment[] = [];
  private waitingBytes = 0;
  private cursor: EnqueueCursor | undefined;

  constructor(target: EnqueueTarget, own: OwnFileWriter) {
    this.target = target;
    this.own = own;
  }

  keep(segment: NewSegment, cursor: EnqueueCursor): void {
    this.waiting.push(segment);
    for (const range of segment.ranges) this.waitingBytes += range.end - range.start;
    this.cursor = cursor;
  }

  async commitWhereFull(): Promise<void> {
    if (this.waitingBytes >= ENQUEUE_COMMIT_BYTES) await this.commit();
    // What is copied may have no item in it for long: blank lines.
    else if (this.own.waitingBytes >= ENQUEUE_COMMIT_BYTES) await this.flush();
  }

  private flush(): Promise<void> {
    return whenThereIsRoom(() => this.own.flush(), this.target.room);
  }

  async commit(): Promise<void> {
    const segments = this.waiting;
    if (segments.length === 0) return;
    const { db, jobId, epoch, reach } = this.target;
    await this.flush();
    const last = segments[segments.length - 1]!;
    await db.transaction(async (tx) => {
      for (const segment of segments) await appendSegment(tx, jobId, segment);
      if (!(await saveEnqueued(tx, jobId, epoch, last.first_batch + last.batch_count, this.cursor ?? null)))
        throw new Error(`job ${jobId} has another owner`);
      reach("segment-before-commit");
    });
    reach("segment-after-commit");
    this.waiting = [];
    this.waitingBytes = 0;
  }
}
