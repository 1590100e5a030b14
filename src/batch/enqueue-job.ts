/** Enqueues one job: its input, of whatever kind, becomes committed segments. Goes on where the last commit was. */
import { whenThereIsRoom } from "../base/disk-full.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { selectFiles } from "../object-store/select-files.ts";
import { EnqueueCommits, type EnqueueCursor, EnqueueError, type EnqueueTarget } from "./enqueue-commits.ts";
import { LineEnqueuer } from "./enqueue-lines.ts";
import { enqueuePaths } from "./enqueue-paths.ts";
import type { JobInput } from "./job-input.ts";
import type { JobRow } from "./job-store.ts";
import { SegmentMaker } from "./make-segments.ts";
import { OWN_PATH, OwnFileWriter } from "./own-file.ts";
import { type StoredInput, storedInput } from "./stored-input.ts";

export interface EnqueueJobOptions extends EnqueueTarget {
  job: JobRow;
  store: ObjectStore;
  input: JobInput;
  /** The path of the job's own file. */
  ownFile: string;
  /** Asked now and then: true ends the work early. */
  isCancelled: () => boolean;
}

/** Resolves to the number of batches, all of them committed; undefined when it was cancelled. */
export async function enqueueJob(options: EnqueueJobOptions): Promise<number | undefined> {
  const { job, ownFile } = options;
  const stored = await storedInput(options.db, job.job_id);
  const cursor =
    job.enqueue_cursor_json === null ? undefined : (JSON.parse(job.enqueue_cursor_json) as EnqueueCursor);
  const maker = new SegmentMaker(stored.batch_size, job.enqueued_batches);
  const own = new OwnFileWriter(ownFile);
  if (stored.kind !== "items") await whenThereIsRoom(() => own.open(cursor?.own_bytes ?? 0), options.room);
  try {
    const isDone = await enqueue(options, stored, { maker, own, cursor });
    if (!isDone) return undefined;
  } finally {
    await own.close();
  }
  if (maker.nextBatch > 0) return maker.nextBatch;
  throw new EnqueueError(
    "no_data",
    "the input has no items: all its files are empty",
    "check store_paths; `quern job submit --dry-run` shows which files they select",
  );
}

interface Progress {
  maker: SegmentMaker;
  own: OwnFileWriter;
  cursor: EnqueueCursor | undefined;
}

function enqueue(options: EnqueueJobOptions, stored: StoredInput, progress: Progress): Promise<boolean> {
  const { store, input, isCancelled } = options;
  const { cursor } = progress;
  const common = { ...progress, isCancelled, commits: new EnqueueCommits(options, progress.own) };
  if (stored.kind === "items")
    return new LineEnqueuer({ ...common, input, files: ownFileOnly(cursor), mustBeObjects: false }).run();
  // An end that is committed already names no file: nothing is behind it.
  const files = selectFiles(store, stored, { sizes: false, from: cursor });
  if (stored.kind === "paths") return enqueuePaths({ ...common, files });
  return new LineEnqueuer({ ...common, input, files, mustBeObjects: true }).run();
}

async function* ownFileOnly(
  cursor: EnqueueCursor | undefined,
): AsyncGenerator<{ path: string; entry: number }[]> {
  if (cursor === undefined || cursor.entry === 0) yield [{ path: OWN_PATH, entry: 0 }];
}
