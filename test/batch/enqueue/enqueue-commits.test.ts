/** When the segments of an input are committed. */
import { expect, it } from "vitest";
import { EnqueueCommits, type EnqueueTarget } from "../../../src/batch/enqueue/enqueue-commits.ts";
import type { NewSegment } from "../../../src/batch/enqueue/make-segments.ts";
import type { ItemsFileWriter } from "../../../src/batch/records/items-file.ts";
import { ENQUEUE_COMMIT_BYTES, SEGMENT_RANGES_BYTES_TARGET } from "../../../src/contracts/limits/jobs.ts";

const CURSOR = { entry: 0, path: "", etag: "", offset: 0, line: 0, own_bytes: 0 };

/** One segment of so many files of 3 bytes, with names of 200. */
function segment(files: number): NewSegment {
  const path = "n".repeat(200);
  const ranges = Array.from({ length: files }, () => ({ path, etag: "", start: 0, end: 3 }));
  return { first_batch: 0, batch_count: files, item_count: files, ranges, has_blank_lines: false };
}

it("commits the segments of small files before their rows are many megabytes", async () => {
  let commits = 0;
  const db = { transaction: async () => void commits++ } as unknown as EnqueueTarget["db"];
  const own = { waitingBytes: 0, flush: async () => {} } as unknown as ItemsFileWriter;
  const target = { db, jobId: "job", epoch: 1, reach: () => {}, diskWait: {} } as unknown as EnqueueTarget;
  const enqueued = new EnqueueCommits(target, own);
  let segments = 0;
  for (; commits === 0 && segments < 1000; segments++) {
    enqueued.keep(segment(200), CURSOR);
    await enqueued.commitWhereFull();
  }
  const expected = ENQUEUE_COMMIT_BYTES / SEGMENT_RANGES_BYTES_TARGET;
  expect([segments > expected / 2, segments < 2 * expected]).toEqual([true, true]);
});
