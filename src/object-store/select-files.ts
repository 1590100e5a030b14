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

/** Pages of selected files; none is empty. Goes on with the file `from`, which was selected before, where given. */
export async function* selectFiles(
  store: ObjectStore,
  selection: FileSelection,
  options: { sizes: boolean; from?: Selected | undefined },
): AsyncGenerator<SelectedFile[]> {
  const isWanted = fileFilter(selection);
  const { store_paths } = selection;
  const first = options.from?.entry ?? 0;
  for (let entry = first; entry < store_paths.length; entry++) {
    const earlier = store_paths.slice(0, entry);
    const from = entry === first && options.from !== undefined ? Buffer.from(options.from.path) : undefined;
    for await (const page of store.list(store_paths[entry]!, options)) {
      const selected = page.filter(
        ({ path }) =>
          !path.endsWith("/") &&
          !earlier.some((prefix) => path.startsWith(prefix)) &&
          (from === undefined || Buffer.compare(Buffer.from(path), from) >= 0) &&
          isWanted(path),
      );
      if (selected.length > 0) yield selected.map((file) => ({ ...file, entry }));
    }
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
