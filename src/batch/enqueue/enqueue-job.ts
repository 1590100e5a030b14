/** Enqueues one job: turns its input, of any kind, into committed segments. Resumes after the last commit. */
import { whenDiskHasSpace } from "../../base/disk-full.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { selectFiles } from "../../object-store/select/select-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { ITEMS_PATH, ItemsFileWriter } from "../records/items-file.ts";
import type { JobInput } from "../records/job-input.ts";
import type { JobRow } from "../records/job-rows.ts";
import { type StoredInput, storedInput } from "../records/stored-input.ts";
import { EnqueueCommits, type EnqueueCursor, type EnqueueTarget } from "./enqueue-commits.ts";
import { LineEnqueuer } from "./enqueue-lines.ts";
import { enqueuePaths } from "./enqueue-paths.ts";
import { SegmentMaker } from "./make-segments.ts";

export interface EnqueueJobOptions extends EnqueueTarget {
  job: JobRow;
  store: ObjectStore;
  input: JobInput;
  /** The path of the job's own file. */
  itemsPath: string;
  /** Called now and then: true ends the work early. */
  isCancelled: () => boolean;
  /** Aborted when the job is ending: a listing that finds nothing for long ends then, by an error. */
  signal: AbortSignal;
}

/** Resolves to the number of batches, all of them committed; undefined if it was cancelled. */
export async function enqueueJob(options: EnqueueJobOptions): Promise<number | undefined> {
  const { job, itemsPath } = options;
  const stored = await storedInput(options.db, job.job_id);
  const cursor =
    job.enqueue_cursor_json === null ? undefined : (JSON.parse(job.enqueue_cursor_json) as EnqueueCursor);
  const maker = new SegmentMaker(stored.batch_size, job.enqueued_batches);
  const own = new ItemsFileWriter(itemsPath);
  if (stored.kind !== "items")
    await whenDiskHasSpace(() => own.open(cursor?.own_bytes ?? 0), options.diskWait);
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
  own: ItemsFileWriter;
  cursor: EnqueueCursor | undefined;
}

function enqueue(options: EnqueueJobOptions, stored: StoredInput, progress: Progress): Promise<boolean> {
  const { store, input, isCancelled, signal } = options;
  const { cursor } = progress;
  const common = { ...progress, isCancelled, commits: new EnqueueCommits(options, progress.own) };
  if (stored.kind === "items")
    return new LineEnqueuer({ ...common, input, files: itemsFileOnly(cursor), mustBeObjects: false }).run();
  // A cursor of `endCursor` names no file: nothing comes after it.
  const files = selectFiles(store, stored, { sizes: false, from: cursor, signal });
  if (stored.kind === "paths") return enqueuePaths({ ...common, files });
  return new LineEnqueuer({ ...common, input, files, mustBeObjects: true }).run();
}

async function* itemsFileOnly(
  cursor: EnqueueCursor | undefined,
): AsyncGenerator<{ path: string; entry: number }[]> {
  if (cursor === undefined || cursor.entry === 0) yield [{ path: ITEMS_PATH, entry: 0 }];
}
