/**
 * The files that a submission selects, in the order of its prefixes and then of key bytes (interface 4.1, decision 3.3):
 * a file that two prefixes select is taken once; keys that end in `/` are directory markers; then `includes`, then
 * `excludes`.
 */
import { compileGlob } from "./glob.ts";
import type { ListedObject, ObjectStore } from "./object-store.ts";

export interface FileSelection {
  store_paths: readonly string[];
  includes?: readonly string[];
  excludes?: readonly string[];
}

export interface SelectedFile extends ListedObject {
  /** Which of the prefixes selected it. */
  entry: number;
}

/** A file that was selected before: the selection goes on with it. */
export interface Selected {
  entry: number;
  path: string;
}

export interface SelectOptions {
  sizes: boolean;
  from?: Selected | undefined;
}

/** Pages of selected files; none is empty. Goes on with the file `from`, which was selected before, where given. */
export async function* selectFiles(
  store: ObjectStore,
  selection: FileSelection,
  { sizes, from }: SelectOptions,
): AsyncGenerator<SelectedFile[]> {
  const isWanted = fileFilter(selection);
  const { store_paths } = selection;
  if (from !== undefined && from.entry < store_paths.length) yield [{ ...from, bytes: undefined }];
  const listings = listingsOf(store_paths).filter(({ entry }) => entry >= (from?.entry ?? 0));
  const list = ({ prefix, entry }: Listing) =>
    store.list(prefix, { sizes, after: entry === from?.entry ? from.path : undefined });
  const parallel = listings.reduce(
    (least, { prefix }) => Math.min(least, store.parallelListings(prefix)),
    64,
  );
  for await (const { of, page } of listAhead(listings, list, parallel)) {
    const { entry, inside } = of;
    const selected = page.filter(
      ({ path }) =>
        !path.endsWith("/") && !inside.some((prefix) => path.startsWith(prefix)) && isWanted(path),
    );
    if (selected.length > 0) yield selected.map((file) => ({ ...file, entry }));
  }
}

/** One entry of `store_paths` that is worth listing. */
interface Listing {
  prefix: string;
  entry: number;
  /** Earlier prefixes that select some of what this one does. */
  inside: readonly string[];
}

/** In order; without those of which an earlier one selects all. Takes time by the lengths of prefixes, not by their pairs. */
function listingsOf(prefixes: readonly string[]): Listing[] {
  const entries = new Map<string, number>();
  for (const [entry, prefix] of prefixes.entries()) if (!entries.has(prefix)) entries.set(prefix, entry);
  const lengths = [...new Set(prefixes.map(({ length }) => length))].sort((a, b) => a - b);
  const inside = new Map<number, string[]>();
  const covered = new Set<number>();
  for (const [prefix, entry] of entries) {
    for (const length of lengths) {
      if (length >= prefix.length) break;
      const other = entries.get(prefix.slice(0, length));
      if (other === undefined) continue;
      if (other < entry) covered.add(entry);
      else appendTo(inside, other, prefix);
    }
  }
  return [...entries]
    .filter(([, entry]) => !covered.has(entry))
    .map(([prefix, entry]) => ({ prefix, entry, inside: inside.get(entry) ?? [] }));
}

function appendTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** The pages of several listings, one listing after the other; the first pages of the next ones are on their way. */
async function* listAhead<T>(
  listings: readonly T[],
  list: (listing: T) => AsyncGenerator<ListedObject[]>,
  parallel: number,
): AsyncGenerator<{ of: T; page: ListedObject[] }> {
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
      for (let page = await first; !page.done; page = await pages.next()) yield { of, page: page.value };
      ahead.shift();
    }
  } finally {
    for (const { pages } of ahead) pages.return(undefined).catch(() => {});
  }
}

/** Whether a path passes `includes` and then `excludes`; an empty list passes all. */
export function fileFilter({ includes = [], excludes = [] }: FileSelection): (path: string) => boolean {
  const included = includes.map(compileGlob);
  const excluded = excludes.map(compileGlob);
  return (path) =>
    (included.length === 0 || included.some((glob) => glob.matches(path))) &&
    !excluded.some((glob) => glob.matches(path));
}
