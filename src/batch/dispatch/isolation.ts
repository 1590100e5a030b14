/**
 * Splits the batches of a job with `on_failure: isolate` that have used up their attempts
 * (docs/decisions/0027-isolation.md). One part of a batch is out at a time, under the batch's index, so that everything
 * else here treats it as the batch. isolate/search.ts decides which part that is.
 */
import { SEARCHED_ITEMS_MAX } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { isSettled, type Segment } from "../../database/segment-rows.ts";
import { type FailedItems, openBatches, partsOf } from "../isolate/isolated-rows.ts";
import { type ItemSource, sourceOfLine } from "../isolate/item-source.ts";
import { Search } from "../isolate/search.ts";
import type { DeadLetter } from "../letters/letters.ts";
import type { FailedAttempt } from "../records/batch-rows.ts";
import type { StoredInput } from "../records/stored-input.ts";
import type { RowsPlace } from "../rows/rows-place.ts";
import type { ErrorBudget } from "./error-budget.ts";
import { BatchItems, PartEntries } from "./part-entries.ts";
import type { LoadedSegment } from "./segment-reader.ts";
import type { Settlements } from "./settlements.ts";

export interface IsolationOptions {
  db: Database;
  jobId: string;
  settlements: Settlements;
  kind: StoredInput["kind"];
  batchSize: number;
  errors: ErrorBudget;
  /** Makes the dead letter of guilty items; undefined if the job has no dead letter queue. */
  letterOf: ((batchIndex: number, failed: FailedItems, items: Uint8Array) => DeadLetter) | undefined;
}

/** A batch that is being searched, and its items once they are needed. */
interface SplitBatch {
  search: Search;
  /** How many items it has. */
  size: number;
  items: BatchItems | undefined;
}

export class Isolation {
  private readonly options: IsolationOptions;
  /** Batches that are split and not settled. */
  private readonly split = new Set<number>();
  /** Those of them whose parts go out now. Their searches are in memory, and take space for each item. */
  private readonly batches = new Map<number, SplitBatch>();
  private searchedItems = 0;
  /** Those that came up, and wait for others to end. */
  private readonly waiting: number[] = [];

  constructor(options: IsolationOptions) {
    this.options = options;
  }

  /** Learns which batches of a segment are split, before it is leased. */
  async load(segment: Segment): Promise<void> {
    const { db, jobId } = this.options;
    const next = segment.first_batch + segment.batch_count;
    for (const batch of await openBatches(db, jobId, segment.first_batch, next))
      if (!isSettled(segment, batch)) this.split.add(batch);
  }

  has(batch: number): boolean {
    return this.split.has(batch);
  }

  /** Whether batches wait for their search. New ones would only make more of them. */
  get isFull(): boolean {
    return this.waiting.length > 0;
  }

  /** Sets a batch aside that is split, and not searched yet: `open` returns it. False for any other batch. */
  setAside(batch: number): boolean {
    if (!this.split.has(batch) || this.batches.has(batch)) return false;
    this.waiting.push(batch);
    return true;
  }

  get mayOpen(): boolean {
    return this.waiting.length > 0 && this.searchedItems < SEARCHED_ITEMS_MAX;
  }

  /** Begins or continues the search in the batch that has waited longest, and resolves to that. */
  async open(): Promise<number> {
    const batch = this.waiting.shift()!;
    const parts = await partsOf(this.options.db, this.options.jobId, batch);
    const size = parts.at(-1)!.next;
    this.batches.set(batch, { search: new Search(parts), size, items: undefined });
    this.searchedItems += size;
    return batch;
  }

  /** Splits a batch that has failed, in the next commit. False if it has a single item. */
  begin(batch: number, attempts: number, loaded: LoadedSegment): boolean {
    const items = new BatchItems(loaded.payload(batch));
    if (items.count < 2) return false;
    this.split.add(batch);
    this.options.settlements.split(batch, Search.begin(items.count, attempts).all);
    return true;
  }

  /** The part of the batch that goes out; undefined if the batch is not split. */
  leaseOf(batch: number, loaded: LoadedSegment): PartEntries | undefined {
    const split = this.batches.get(batch);
    if (split === undefined) return undefined;
    const { first, next } = split.search.current!;
    return new PartEntries(itemsOf(split, batch, loaded), first, next);
  }

  /** The part that was out has succeeded. True if others of its batch are left. */
  succeeded(batch: number, { segment }: LoadedSegment, place: RowsPlace | undefined): boolean {
    const { search } = this.batches.get(batch)!;
    this.options.settlements.succeedPart(segment, batch, search, search.succeeded(place));
    return this.isLeft(batch, search);
  }

  /**
   * The part that was out has failed. `isLeft`: others of its batch are left. `isFinal`: an item has finally failed, and
   * no other one of its batch has succeeded.
   */
  failed(
    batch: number,
    loaded: LoadedSegment,
    { cause, fault }: Pick<FailedAttempt, "cause" | "fault">,
    maySplit: boolean,
  ): { isLeft: boolean; isFinal: boolean } {
    const { settlements, errors, letterOf } = this.options;
    const split = this.batches.get(batch)!;
    const changed = split.search.failed(maySplit);
    const [{ first, next, state, attempts }] = changed as [(typeof changed)[0]];
    if (state !== "guilty") {
      settlements.failPart(loaded.segment, batch, split.search, { changed });
      return { isLeft: true, isFinal: false };
    }
    const items = itemsOf(split, batch, loaded);
    const failed = {
      first,
      next,
      attempts,
      cause,
      ...errors.keep(fault),
      source: this.sourceOf(loaded, batch, first, items),
    };
    const letter = letterOf?.(batch, failed, items.slice(first, next));
    settlements.failPart(loaded.segment, batch, split.search, { changed, failed, letter });
    return { isLeft: this.isLeft(batch, split.search), isFinal: !split.search.has("good") };
  }

  private isLeft(batch: number, search: Search): boolean {
    if (search.current !== undefined) return true;
    this.searchedItems -= this.batches.get(batch)!.size;
    this.batches.delete(batch);
    this.split.delete(batch);
    return false;
  }

  private sourceOf(
    { segment, lineNumbers }: LoadedSegment,
    batch: number,
    item: number,
    items: BatchItems,
  ): ItemSource | undefined {
    const { kind, batchSize } = this.options;
    if (kind === "paths") return { path: JSON.parse(items.text(item)) as string };
    return sourceOfLine(segment, (batch - segment.first_batch) * batchSize + item, lineNumbers);
  }
}

function itemsOf(split: SplitBatch, batch: number, loaded: LoadedSegment): BatchItems {
  split.items ??= new BatchItems(loaded.payload(batch));
  return split.items;
}
