/**
 * Enqueues one job: turns its input, of any kind, into committed segments. Resumes where its last turn stopped; after a
 * crash, after the last commit.
 */
import { DiskNearlyFull, whenDiskWorks } from "../../base/disk-full.ts";
import { RANGES_KEPT_MAX } from "../../contracts/limits/jobs.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { type SelectedPage, selectPages } from "../../object-store/select/select-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { ITEMS_PATH, type ItemsWriter } from "../records/items-file.ts";
import type { JobInput } from "../records/job-input.ts";
import { committedEnqueuing } from "../records/owned-job.ts";
import { type StoredInput, storedInput } from "../records/stored-input.ts";
import { EnqueueCommits, type EnqueueCursor, type EnqueueTarget } from "./enqueue-commits.ts";
import { LineEnqueuer } from "./enqueue-lines.ts";
import { enqueuePaths } from "./enqueue-paths.ts";
import { committedPosition, EnqueuePause, type IsTurnOver, type Position } from "./enqueue-position.ts";
import { SegmentMaker } from "./make-segments.ts";

export interface EnqueueJobOptions extends EnqueueTarget {
  store: ObjectStore;
  input: JobInput;
  /** The job's own file. */
  own: ItemsWriter;
  /** Called now and then: true ends the work early. */
  isCancelled: () => boolean;
  /** Called now and then: true ends this turn. */
  isTurnOver: IsTurnOver;
  /** Aborted when the job is ending: a listing or a compressed file that yields nothing ends then, by an error. */
  signal: AbortSignal;
  /** Called with what the job waits for in its turn; with undefined when that is over. */
  onWait: (reason: string | undefined) => void;
  /** What the last turn kept. */
  kept: KeptTurn | undefined;
}

/** What is kept in memory between two turns, so that nothing is read twice. */
export interface KeptTurn {
  position: Position;
  /** Has the lines of a segment that is not complete. */
  maker: SegmentMaker;
  /** Bytes of the job's own file. */
  ownBytes: number;
}

export type EnqueueTurnEnd =
  | { kind: "cancelled" }
  /** The number of batches, all of them committed. */
  | { kind: "enqueued"; total: number }
  /** Nothing is kept if it is too much: the next turn begins after the last commit. */
  | { kind: "turn_over"; kept: KeptTurn | undefined; isFurther: boolean }
  /** The disk has no space for more copies of the input. The next turn begins after the last commit. */
  | { kind: "no_space"; reason: string };

/** Enqueues the job, or a turn of it. Throws EnqueueError if the input is invalid. */
export async function enqueueJob(options: EnqueueJobOptions): Promise<EnqueueTurnEnd> {
  const stored = await storedInput(options.db, options.jobId);
  const before = options.kept ?? (await committed(options, stored));
  const { maker } = before;
  const batchesBefore = maker.cutBatches;
  const { own } = options;
  try {
    if (stored.kind !== "items") await whenDiskWorks(() => own.open(before.ownBytes), options.diskWait);
    const commits = new EnqueueCommits(options, own);
    const position = await enqueue(options, stored, before, { maker, own, commits });
    if (options.isCancelled()) return { kind: "cancelled" };
    if (position !== undefined) {
      await commits.pause();
      const isKept = maker.openRanges <= RANGES_KEPT_MAX;
      const kept = isKept ? { position, maker, ownBytes: own.bytes } : undefined;
      return { kind: "turn_over", kept, isFurther: isKept || maker.cutBatches > batchesBefore };
    }
  } catch (error) {
    if (error instanceof DiskNearlyFull) return { kind: "no_space", reason: error.message };
    throw error;
  } finally {
    await own.close();
  }
  if (maker.nextBatch > 0) return { kind: "enqueued", total: maker.nextBatch };
  throw new EnqueueError(
    "no_data",
    "the input has no items: all its files are empty",
    "check store_paths; `quern job submit --dry-run` shows which files they select",
  );
}

async function committed({ db, jobId }: EnqueueJobOptions, stored: StoredInput): Promise<KeptTurn> {
  const { batches, cursor_json } = await committedEnqueuing(db, jobId);
  const cursor = cursor_json === null ? undefined : (JSON.parse(cursor_json) as EnqueueCursor);
  return {
    position: committedPosition(cursor, stored.kind === "paths"),
    maker: new SegmentMaker(stored.batch_size, batches),
    ownBytes: cursor?.own_bytes ?? 0,
  };
}

interface Progress {
  maker: SegmentMaker;
  own: ItemsWriter;
  commits: EnqueueCommits;
}

/** Resolves to where it stopped; undefined if all is enqueued. */
function enqueue(
  options: EnqueueJobOptions,
  stored: StoredInput,
  { position: from }: KeptTurn,
  progress: Progress,
): Promise<Position | undefined> {
  const { store, input, isCancelled, isTurnOver, signal, onWait } = options;
  const { reached, file } = from;
  const wait = { signal, onWait };
  const common = { ...progress, pause: new EnqueuePause(isCancelled, isTurnOver, from) };
  if (stored.kind === "items")
    return new LineEnqueuer({
      ...common,
      ...{ input, wait },
      file,
      pages: itemsFileOnly(from),
      mustBeObjects: false,
    }).run();
  const pages = selectPages(store, stored, { sizes: false, from: reached, signal });
  if (stored.kind === "paths") return enqueuePaths({ ...common, pages });
  return new LineEnqueuer({ ...common, input, wait, file, pages, mustBeObjects: true }).run();
}

async function* itemsFileOnly({ reached: { entry, path } }: Position): AsyncGenerator<SelectedPage> {
  if (entry === 0 && path === undefined)
    yield {
      files: [{ path: ITEMS_PATH, entry: 0, bytes: undefined }],
      reached: { entry: 0, path: ITEMS_PATH },
    };
}
