/**
 * Selects the files of a submission, in the order of its prefixes and then of key bytes
 * (docs/contract/submitting.md#file-order). A file that two prefixes select is taken once. Keys that end in `/` are
 * directory markers, which are skipped, and so are probes of conditions. Then `includes` apply, then `excludes`.
 */
import { ServiceError } from "../../contracts/errors.ts";
import { GLOB_STATES_KEPT } from "../../contracts/limits/input-files.ts";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import type { ListedObject, ObjectStore } from "../object-store.ts";
import { isProbe } from "../own-names.ts";
import { compileGlob, type Glob } from "./glob.ts";
import { type Listing, listingsOf } from "./listings.ts";

export interface FileSelection {
  store_paths: readonly string[];
  includes?: readonly string[];
  excludes?: readonly string[];
}

export interface SelectedFile extends ListedObject {
  /** Index of the prefix that selected it. */
  entry: number;
}

/** How far a selection has come: all files of this prefix up to `path`; without a path, those of earlier prefixes. */
export interface Reached {
  entry: number;
  path: string | undefined;
}

export interface SelectedPage {
  /** Empty if the store listed files of which none is selected, or none at all. */
  files: SelectedFile[];
  /** Where the selection resumes after this page. */
  reached: Reached;
}

export interface SelectOptions {
  sizes: boolean;
  /** Aborted when nobody wants the rest: the selection ends by an error, also if no file was found for long. */
  signal?: AbortSignal | undefined;
  /** The most prefixes to list at the same time, if it is fewer than are worth it. */
  parallel?: number | undefined;
}

/** Pages of selected files; no page is empty. */
export async function* selectFiles(
  store: ObjectStore,
  selection: FileSelection,
  options: SelectOptions,
): AsyncGenerator<SelectedFile[]> {
  for await (const { files } of selectPages(store, selection, options)) if (files.length > 0) yield files;
}

/** What comes next, such as JSON, takes as long as paths are: many long ones are passed on a few at a time. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * A page for each one that a store lists, or several if its paths are long, and one at the end of each prefix. Resumes
 * after `from`.
 */
export async function* selectPages(
  store: ObjectStore,
  selection: FileSelection,
  { sizes, from, signal, parallel: most = 64 }: SelectOptions & { from?: Reached | undefined },
): AsyncGenerator<SelectedPage> {
  const filter = fileFilter(selection);
  const { store_paths } = selection;
  const first = from?.entry ?? 0;
  const listings = (await listingsOf(store_paths, LISTING_SLICES)).filter(({ entry }) => entry >= first);
  const list = ({ prefix, entry }: Listing) =>
    store.list(prefix, { sizes, after: entry === from?.entry ? from.path : undefined, signal });
  const parallel = await parallelOf(store, listings, most);
  let reached = from;
  for await (const { of, page } of listAhead(listings, list, { parallel, signal })) {
    const { entry, inside } = of;
    if (page === undefined) {
      reached = { entry: entry + 1, path: undefined };
      yield { files: [], reached };
      continue;
    }
    let [selected, characters]: [SelectedFile[], number] = [[], 0];
    for (const file of page) {
      const { path } = file;
      if (characters >= PIECE_CHARACTERS) {
        yield { files: selected, reached: reached! };
        [selected, characters] = [[], 0];
      }
      characters += path.length;
      reached = { entry, path };
      if (path.endsWith("/") || isProbe(path) || (inside !== undefined && isInside(inside, path))) continue;
      if (await isWanted(filter, path)) selected.push({ ...file, entry });
    }
    if (reached?.entry !== entry) reached = { entry, path: undefined };
    yield { files: selected, reached };
  }
}

async function parallelOf(store: ObjectStore, listings: readonly Listing[], most: number): Promise<number> {
  let least = most;
  for (const { prefix } of listings) {
    if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
    least = Math.min(least, store.parallelListings(prefix));
  }
  return least;
}

/** Only the last prefix that does not sort after the path can be its beginning. */
function isInside(prefixes: readonly string[], path: string): boolean {
  let [from, to] = [0, prefixes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (prefixes[middle]! <= path) from = middle + 1;
    else to = middle;
  }
  return from > 0 && path.startsWith(prefixes[from - 1]!);
}

/**
 * The pages of several listings, one listing after the other, each with an undefined one at its end. The first pages of
 * the next listings are requested ahead.
 */
async function* listAhead<T>(
  listings: readonly T[],
  list: (listing: T) => AsyncGenerator<ListedObject[]>,
  { parallel, signal }: { parallel: number; signal: AbortSignal | undefined },
): AsyncGenerator<{ of: T; page: ListedObject[] | undefined }> {
  const orLeft = untilAborted(signal);
  const ahead: {
    of: T;
    pages: AsyncGenerator<ListedObject[]>;
    first: Promise<IteratorResult<ListedObject[]>>;
  }[] = [];
  let next = 0;
  try {
    while (next < listings.length || ahead.length > 0) {
      while (next < listings.length && ahead.length < parallel) {
        const of = listings[next++]!;
        const pages = list(of);
        const first = pages.next();
        first.catch(() => {});
        ahead.push({ of, pages, first });
      }
      const { of, pages, first } = ahead[0]!;
      for (let page = await orLeft(first); !page.done; page = await orLeft(pages.next()))
        yield { of, page: page.value };
      yield { of, page: undefined };
      ahead.shift();
    }
  } finally {
    orLeft.end();
    for (const { pages } of ahead) pages.return(undefined).catch(() => {});
  }
}

/** Awaits what is passed, or throws once the signal is aborted. It listens to the signal once, until `end`. */
function untilAborted(signal: AbortSignal | undefined) {
  let stop: (error: ServiceError) => void = () => {};
  const end = () => signal?.removeEventListener("abort", abort);
  const abort = () => stop(askerLeft());
  signal?.addEventListener("abort", abort);
  const wait = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      work.then(resolve, reject);
      stop = reject;
      if (signal?.aborted) abort();
    });
  return Object.assign(wait, { end });
}

export function askerLeft(): ServiceError {
  return new ServiceError("queue_full", "whoever asked left before all files were listed", {
    retryAfterS: 1,
  });
}

interface FileFilter {
  included: readonly Glob[];
  excluded: readonly Glob[];
}

function fileFilter({ includes = [], excludes = [] }: FileSelection): FileFilter {
  const statesKept = Math.max(8, Math.floor(GLOB_STATES_KEPT / (includes.length + excludes.length)));
  const compile = (pattern: string) => compileGlob(pattern, statesKept);
  return { included: includes.map(compile), excluded: excludes.map(compile) };
}

/** Whether a path passes `includes` and then `excludes`; an empty list passes all. */
async function isWanted({ included, excluded }: FileFilter, path: string): Promise<boolean> {
  const isAny = async (globs: readonly Glob[]) => {
    for (const glob of globs) {
      if (glob.matches(path)) return true;
      if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
    }
    return false;
  };
  if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
  return (
    (included.length === 0 || (await isAny(included))) && !(excluded.length > 0 && (await isAny(excluded)))
  );
}
